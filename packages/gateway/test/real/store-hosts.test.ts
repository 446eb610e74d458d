// Several hosts in the database URL, and what is said when none of them can be used.
import { createGateway, migrate } from "@palisade/gateway";
import { PostgresPair } from "@palisade/testkit";
import { test as base, describe, eventually, expect, quiet } from "../support/fixtures.js";
import { runProgram } from "../support/gateway-process.js";
import { get, put } from "../support/wire.js";

function urlOf(...servers: readonly { readonly port: number }[]): string {
  return `postgres://postgres@${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}/postgres?target_session_attrs=read-write`;
}

describe("a URL with several hosts", () => {
  base("G3 leads to the one that can be written to, and to the other one after a failover", async ({ onTestFinished }) => {
    const pair = await PostgresPair.start({ replication: "sync" });
    onTestFinished(() => pair.stop());
    const { primary, standby } = pair;
    const databaseUrl = urlOf(standby, primary);
    const gateway = createGateway({ ...quiet, connectTimeoutMs: 2_000, databaseUrl });
    onTestFinished(async () => void (await gateway.close()));
    await gateway.listen();
    expect(await put(gateway.url, "x", { token: 1, value: { n: 1 } })).toMatchObject({ status: 201 });
    expect(await get(gateway.url, "x")).toMatchObject({ json: { n: 1 } });
    await primary.stop();
    await pair.promote();
    await eventually(async () => (await put(gateway.url, "x", { token: 2, value: { n: 2 } })).status).toBe(200);
    await eventually(async () => (await get(gateway.url, "x")).json).toEqual({ n: 2 });
    expect(await put(gateway.url, "x", { token: 1, value: { n: 3 } })).toMatchObject({ status: 412 });
    expect(await migrate(databaseUrl)).toMatchObject({ applied: [] });
  });

  base("G3 after a failover no read is answered by the server that was replaced, although it still runs", async ({ onTestFinished }) => {
    const pair = await PostgresPair.start({ replication: "sync" });
    onTestFinished(() => pair.stop());
    const limits = { connectTimeoutMs: 10_000, writeTimeoutMs: 1_000, lockWaitMs: 500, batchLockWaitMs: 100 };
    const gateway = createGateway({ ...quiet, ...limits, databaseUrl: urlOf(pair.primary, pair.standby) });
    onTestFinished(async () => void (await gateway.close()));
    await gateway.listen();
    expect(await put(gateway.url, "x", { token: 1, value: { n: 1 } })).toMatchObject({ status: 201 });
    expect((await Promise.all([1, 2, 3].map(() => get(gateway.url, "x")))).map(({ json }) => json)).toEqual([{ n: 1 }, { n: 1 }, { n: 1 }]);
    await pair.promote();
    await eventually(async () => (await put(gateway.url, "x", { token: 2, value: { n: 2 } })).status).toBe(200);
    expect(await put(gateway.url, "x", { token: 3, value: { n: 3 } })).toMatchObject({ status: 200 });
    const read = await Promise.all(Array.from({ length: 12 }, () => get(gateway.url, "x")));
    expect(read.map(({ json }) => json)).toEqual(read.map(() => ({ n: 3 })));
  });

  base("leads to the server that was promoted last when the one it replaced still runs", async ({ onTestFinished }) => {
    const pair = await PostgresPair.start({ replication: "async" });
    onTestFinished(() => pair.stop());
    await pair.promote();
    await migrate(urlOf(pair.primary, pair.standby));
    const gateway = createGateway({ ...quiet, migrations: "off", databaseUrl: pair.standby.url });
    onTestFinished(async () => void (await gateway.close()));
    await gateway.listen();
    expect(await put(gateway.url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
  });
});

describe("the program", () => {
  base.for([
    [{ hostname: "no-such-host.invalid" }, /the host no-such-host\.invalid has no address/],
    [{ port: "1" }, /nothing answers at host and port 127\.0\.0\.1:1 \(ECONNREFUSED\)/],
    [{ pathname: "/nowhere" }, /there is no database nowhere at 127\.0\.0\.1/],
    [{ username: "nobody-knows" }, /the user nobody-knows or its password is not accepted/],
    [{ search: "?sslmode=verify-full" }, /sslmode does not fit: .* offers no TLS/],
  ] as const)("says which part of the URL does not fit, and never the password: %#", async ([change, sentence], { postgres }) => {
    const url = new URL(postgres.url);
    url.hostname = "127.0.0.1";
    url.password = "hunter2";
    Object.assign(url, change);
    const { code, out, err } = await runProgram(["grant"], { DATABASE_URL: url.href });
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(sentence) });
    expect(out + err).not.toContain("hunter2");
  });
});
