// A start that cannot come about says what is missing, where, and what to do; and ends.
import { createServer } from "node:net";
import { PostgresPair, PostgresServer, startChild } from "@palisade/testkit";
import { expect, test as plain } from "@palisade/testkit/vitest";
import pg from "pg";
import { bringUpToDate } from "../../src/gateway.js";
import { createLog } from "../../src/observe/log.js";
import { grantRoles, migrate } from "../../src/store/migrate.js";
import { createGateway, gatewayProgram as program, quiet, runProgram } from "../support/fixtures.js";
import { get, put } from "../support/wire.js";

/** A port of this machine that nothing answers at. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { readonly port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

plain("while Postgres is not there, one line a second names the host; SIGTERM ends the wait at once", async () => {
  const port = await closedPort();
  const lines: { readonly msg: string; readonly reason: string; readonly time: string }[] = [];
  const child = startChild({
    command: process.execPath,
    args: [program],
    env: { DATABASE_URL: `postgres://a@127.0.0.1:${port}/b`, PORT: "0", ADMIN_PORT: "0" },
    name: "palisade-gateway",
    onLine: (line) => line.startsWith("{") && lines.push(JSON.parse(line)),
  });
  try {
    const waiting = () => lines.filter(({ msg }) => msg === "Postgres is not there yet");
    await expect.poll(() => waiting().length, { timeout: 30_000 }).toBe(3);
    expect(waiting()[0]?.reason).toBe(`nothing answers at host and port 127.0.0.1:${port} (ECONNREFUSED)`);
    const [first, second, third] = waiting().map(({ time }) => Date.parse(time));
    expect(Number(third) - Number(first)).toBeGreaterThan(1_900);
    expect(Number(second)).toBeGreaterThan(Number(first));
    child.signal("SIGTERM");
    const toldAt = performance.now();
    expect(await child.waitForExit()).toEqual({ code: 0, signal: null });
    expect(performance.now() - toldAt).toBeLessThan(900); // Before the next try.
  } finally {
    await child.kill();
  }
});

plain("a Postgres that does not come ends the start with its host and how long it was waited for", async () => {
  const port = await closedPort();
  const start = bringUpToDate(`postgres://a@127.0.0.1:${port}/b`, createLog("silent"), { maxWaitMs: 10 });
  await expect(start).rejects.toThrow(
    new RegExp(`^Postgres was not there within 0\\.\\d s: nothing answers at host and port 127\\.0\\.0\\.1:${port}`),
  );
});

plain("a standby is waited for, and then ends the start with what DATABASE_URL must name", async ({ onTestFinished }) => {
  const pair = await PostgresPair.start({ replication: "async" });
  onTestFinished(() => pair.stop());
  const start = bringUpToDate(pair.standby.url, createLog("silent"), { maxWaitMs: 10 });
  await expect(start).rejects.toThrow(
    /is a standby, which takes no writes: DATABASE_URL must name the primary, or an address that leads to it$/,
  );
  const waiting = bringUpToDate(pair.standby.url, createLog("silent"));
  await pair.promote();
  await waiting;
});

plain(
  "G6 a gateway that does not migrate starts while Postgres is silent, and on a standby, which it reads",
  async ({ onTestFinished }) => {
    const pair = await PostgresPair.start({ replication: "async" });
    onTestFinished(() => pair.stop());
    await migrate(pair.primary.url);
    const start = async (databaseUrl: string) => {
      const gateway = createGateway({ ...quiet, migrations: "off", connectTimeoutMs: 300, databaseUrl });
      onTestFinished(async () => void (await gateway.close()));
      await gateway.listen();
      return gateway.url;
    };
    const onStandby = await start(pair.standby.url);
    const caughtUp = () => get(onStandby, "x");
    await expect.poll(caughtUp, { timeout: 30_000 }).toMatchObject({ status: 404, json: { code: "not_found" } });
    expect(await put(onStandby, "x", { token: 1, value: {} })).toMatchObject({ status: 503, json: { outcome: "not_applied" } });
    await pair.primary.pause();
    const url = await start(pair.primary.url);
    await pair.primary.resume();
    await expect.poll(() => put(url, "x", { token: 1, value: {} }), { timeout: 30_000 }).toMatchObject({ status: 201 });
  },
);

plain("a role without the rights is told the command, and whose it is", async () => {
  const server = await PostgresServer.start();
  const owner = new pg.Client({ connectionString: server.url });
  try {
    await owner.connect();
    await owner.query("create role nobody login");
    const url = Object.assign(new URL(server.url), { username: "nobody" }).href;
    const env = { DATABASE_URL: url, PORT: "0", ADMIN_PORT: "0" };
    const advice = "Run `palisade-gateway migrate` with the DATABASE_URL of the database's owner";
    expect(await runProgram(["serve"], env)).toMatchObject({
      code: 1,
      err: expect.stringMatching(new RegExp(`palisade-gateway: the role nobody may not .*permission denied.*${advice}`)),
    });
    await migrate(server.url);
    await grantRoles(server.url);
    const grant = "run `palisade-gateway grant` as the owner of the schema, and `grant palisade_gateway to nobody`";
    expect(await runProgram(["serve"], env)).toMatchObject({ code: 1, err: expect.stringContaining(grant) });
  } finally {
    await owner.end();
    await server.stop();
  }
});

plain.for([
  [{ hostname: "no-such-host.invalid" }, /the host no-such-host\.invalid has no address/],
  [{ port: "1" }, /nothing answers at host and port 127\.0\.0\.1:1 \(ECONNREFUSED\)/],
  [{ pathname: "/nowhere" }, /there is no database nowhere at 127\.0\.0\.1/],
  [{ username: "nobody-knows" }, /the user nobody-knows or its password is not accepted/],
  [{ search: "?sslmode=verify-full" }, /sslmode does not fit: .* offers no TLS/],
] as const)("the program says which part of the URL does not fit, and never the password: %#", async ([change, sentence], { postgres }) => {
  const url = new URL(postgres.url);
  url.hostname = "127.0.0.1";
  url.password = "hunter2";
  Object.assign(url, change);
  const { code, out, err } = await runProgram(["grant"], { DATABASE_URL: url.href });
  expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(sentence) });
  expect(out + err).not.toContain("hunter2");
});

plain("the program refuses several hosts before it asks any of them, and says what leads to the primary", async () => {
  const started = await runProgram([], { DATABASE_URL: "postgres://user:hunter2@127.0.0.1:1,127.0.0.1:2/app" });
  const sentence = /DATABASE_URL names several hosts and must name one: .*HAProxy, a service or a DNS name .*deploy\/ha/;
  expect(started).toMatchObject({ code: 2, err: expect.stringMatching(sentence) });
  expect(started.out + started.err).not.toMatch(/hunter2|ECONNREFUSED/);
  await expect(migrate("postgres:///app?host=a,b")).rejects.toThrow(/several hosts/);
});
