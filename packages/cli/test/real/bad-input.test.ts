// What cannot be answered, on real nodes and a real gateway: each has a clear answer and an exit
// code that says which kind it is.
import { createHash } from "node:crypto";
import { createGatewayClient } from "@palisade/client";
import { createGateway, migrate } from "@palisade/gateway";
import { createLocker } from "@palisade/lock";
import { test as base, expect } from "@palisade/testkit/vitest";
import { palisade } from "../support/terminal.js";

const patient = { ttlMs: 60_000, waitMs: 50_000, nodeTimeoutMs: 5_000 } as const;
const test = base.extend("databaseTemplate", { scope: "file" }, async () => ({ name: "gateway", migrate }));

test("a resource that nobody ever used is free, is not listed, and cannot be taken away", async ({ redis }) => {
  const env = { PALISADE_REDIS_URLS: redis.urls.join(","), PALISADE_NAMESPACE: redis.namespace };
  const shown = async (...args: string[]) => await palisade(args, { env, columns: 100 });
  expect(await shown("inspect", "nobody/1")).toMatchObject({
    exitCode: 0,
    output: expect.stringMatching(/nobody\/1 is free; every later lease has a token above \d+/),
  });
  expect(await shown("ls", "nobody/")).toMatchObject({ exitCode: 0, output: "0 resources are held that begin with nobody/\n" });
  expect(await shown("force-release", "nobody/1", "--reason", "x", "--yes")).toMatchObject({
    exitCode: 1,
    output: expect.stringContaining("Nothing was changed"),
  });
});

test("a credential without the right, or a wrong one, is refused with exit code 4 and never shown", async ({ database }) => {
  const sha256 = createHash("sha256").update("key-of-a-reader-of-all-documents-0001").digest("hex");
  const settings = { host: "127.0.0.1", port: 0, adminPort: 0, logLevel: "silent" } as const;
  const gateway = createGateway({ ...settings, databaseUrl: database.url, apiKeys: [{ id: "reader", sha256, scopes: ["read:"] }] });
  await gateway.listen();
  try {
    const reader = { PALISADE_GATEWAY_URL: gateway.url, PALISADE_API_KEY: "key-of-a-reader-of-all-documents-0001" };
    const raised = await palisade(["raise", "orders/1", "7", "--reason", "x"], { env: reader });
    expect(raised).toMatchObject({ exitCode: 4, output: "", errors: expect.stringContaining("forbidden_scope") });
    const env = { ...reader, PALISADE_API_KEY: "not-the-key-of-anyone-who-works-here-01" };
    for (const args of [
      ["fence", "orders/1"],
      ["raise", "orders/1", "7", "--reason", "x"],
    ]) {
      const ran = await palisade(args, { env });
      expect(ran).toMatchObject({ exitCode: 4, output: "", errors: expect.stringMatching(/unauthenticated.*Set PALISADE_API_KEY/) });
      expect(ran.errors).not.toContain("not-the-key");
    }
    await gateway.close();
    const gone = await palisade(["fence", "orders/1", "--timeout", "0.5"], { env });
    expect(gone).toMatchObject({ exitCode: 3, errors: expect.stringContaining("could not be reached") });
  } finally {
    await gateway.close();
  }
});

test("a key that may only seal fences the holder whose lock it takes, and says that the reason is not kept", async ({
  database,
  redis,
}) => {
  const key = "key-of-one-who-may-seal-all-names-001";
  const sha256 = createHash("sha256").update(key).digest("hex");
  const settings = { host: "127.0.0.1", port: 0, adminPort: 0, logLevel: "silent" } as const;
  const apiKeys = [{ id: "sealer", sha256, scopes: ["read:", "write:", "seal:"] }];
  const gateway = createGateway({ ...settings, databaseUrl: database.url, apiKeys });
  await gateway.listen();
  await using locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
  try {
    const { token } = await locker.acquire("jobs/sealed");
    const lock = { PALISADE_REDIS_URLS: redis.urls.join(","), PALISADE_NAMESPACE: redis.namespace };
    const env = { ...lock, PALISADE_GATEWAY_URL: gateway.url, PALISADE_API_KEY: key };
    const released = await palisade(["force-release", "jobs/sealed", "--reason", "x", "--yes"], { env, columns: 100 });
    expect(released).toMatchObject({ exitCode: 0, output: expect.stringContaining("The key has no admin scope") });
    const late = await createGatewayClient({ url: gateway.url, apiKey: key }).put("jobs/sealed", {}, { token });
    expect(late).toMatchObject({ ok: false, code: "fencing_token_stale" });
  } finally {
    await gateway.close();
  }
});

test("nodes whose user lacks a right, and nodes that are away, are named with the cause, and the exit code is 3", async ({ fleet }) => {
  const { nodes, urls } = await fleet({ nodes: 3 });
  await using locker = createLocker({ nodes: urls, ...patient });
  await locker.acquire("r");
  for (const node of nodes) await node.cli("ACL", "SETUSER", "poor", "on", ">p", "~*", "&*", "+@all", "-evalsha", "-eval");
  const poor = { PALISADE_REDIS_URLS: urls.map((url) => url.replace("redis://", "redis://poor:p@")).join(",") };
  const refused = await palisade(["ls", "--timeout", "1"], { env: poor, columns: 80 });
  expect(refused).toMatchObject({ exitCode: 3, errors: expect.stringMatching(/NOPERM: the user lacks a permission/) });
  await nodes[0]?.kill();
  const env = { PALISADE_REDIS_URLS: urls.join(",") };
  expect(await palisade(["ls"], { env, columns: 80 })).toMatchObject({
    exitCode: 0,
    output: expect.stringContaining("1 resource is held"),
  });
  await nodes[1]?.kill();
  // Half of the fleet can prove nothing: neither that it is held nor that it is free.
  expect(await palisade(["inspect", "r", "--timeout", "1"], { env, columns: 80 })).toMatchObject({
    exitCode: 1,
    output: expect.stringContaining("r: too few nodes answered to tell"),
  });
  for (const args of [["ls"], ["force-release", "r", "--reason", "x", "--yes"]])
    expect(await palisade([...args, "--timeout", "1"], { env })).toMatchObject({
      exitCode: 3,
      errors: expect.stringMatching(/1 of 3 nodes.*ECONNREFUSED/),
    });
});

test("of many matches the first thousand are shown, with the word that there are more; all are there for programs", async ({ redis }) => {
  await using locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
  await Promise.all(Array.from({ length: 1_100 }, (_, i) => locker.acquire(`many/${String(i).padStart(5, "0")}`)));
  const env = { PALISADE_REDIS_URLS: redis.urls.join(","), PALISADE_NAMESPACE: redis.namespace };
  const { output } = await palisade(["ls", "many/"], { env, columns: 100 });
  expect(output.match(/^many\//gm)).toHaveLength(1_000);
  expect(output).toContain("only the first 1000 are shown (--limit)");
  const piped = await palisade(["ls", "many/", "--limit", "100000"], { env });
  expect(piped.output.split("\n")).toHaveLength(1_101);
  const few = await palisade(["ls", "many/", "--limit", "10"], { env, columns: 100 });
  expect(few.output.match(/^many\//gm)).toHaveLength(10);
  expect(JSON.parse((await palisade(["ls", "--limit", "10000", "--json"], { env })).output)).toMatchObject({ more: false });
});
