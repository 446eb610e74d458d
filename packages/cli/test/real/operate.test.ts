// The program on a real fleet and a real gateway, at an incident: who holds it, take it away, prove
// that the old holder is fenced.
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { createGatewayClient } from "@palisade/client";
import { createGateway, type Gateway, migrate } from "@palisade/gateway";
import { createLocker, type Locker } from "@palisade/lock";
import { startNode } from "@palisade/testkit";
import { test as base, describe, expect, type SharedRedis } from "@palisade/testkit/vitest";
import { run } from "#cli/run.js";
import { palisade } from "../support/terminal.js";

const patient = { ttlMs: 60_000, waitMs: 50_000, nodeTimeoutMs: 5_000 } as const;
const environment = ({ urls, namespace }: SharedRedis) => ({ PALISADE_REDIS_URLS: urls.join(","), PALISADE_NAMESPACE: namespace });

const test = base
  .extend("databaseTemplate", { scope: "file" }, async () => ({ name: "gateway", migrate }))
  .extend("locker", async ({ redis }, { onCleanup }): Promise<Locker> => {
    const locker = createLocker({ nodes: redis.urls, namespace: redis.namespace, label: "worker-7", ...patient });
    onCleanup(() => locker.close());
    return locker;
  })
  .extend("gateway", async ({ database }, { onCleanup }): Promise<Gateway> => {
    const config = {
      host: "127.0.0.1",
      apiKeys: "none",
      port: 0,
      adminPort: 0,
      logLevel: "silent",
      history: "on",
    } as const;
    const gateway = createGateway({ ...config, databaseUrl: database.url });
    await gateway.listen();
    onCleanup(async () => void (await gateway.close()));
    return gateway;
  });

describe("an incident", () => {
  test("inspect and ls say who holds it; force-release takes it away and fences the holder", async ({ redis, locker, gateway }) => {
    const env = { ...environment(redis), PALISADE_GATEWAY_URL: gateway.url };
    const client = createGatewayClient({ url: gateway.url });
    const lease = await locker.acquire("orders/42");
    await client.put("orders/42", { n: 1 }, { lease });

    const seen = await palisade(["inspect", "orders/42"], { env, columns: 100 });
    expect(seen.exitCode).toBe(0);
    expect(seen.output).toContain("orders/42 is held by worker-7");
    expect((await palisade(["ls", "orders/"], { env })).output).toMatch(new RegExp(`^orders/42\tworker-7\t.*\t${lease.token}\n$`));
    expect((await palisade(["ls", "other/"], { env, columns: 80 })).output).toContain("0 resources are held that begin with other/");

    const released = await palisade(["force-release", "orders/42", "--reason", "host is gone", "--yes"], { env, columns: 100 });
    expect(released).toMatchObject({ exitCode: 0, errors: "" });
    expect(released.output).toContain("Removed: worker-7");
    expect(released.output).toMatch(/fence stands at \d+: writes with a lower token are refused/);
    expect(await client.put("orders/42", { n: 2 }, { token: lease.token })).toMatchObject({ ok: false, code: "fencing_token_stale" });
    expect((await palisade(["ls"], { env, columns: 80 })).output).toContain("0 resources are held");
    const line = new RegExp(`\torders/42\tfencing_token_stale\t${lease.token}\t\\d+\tanonymous\t\t\n`);
    const refused = ["refused", "orders/", "--since", "10"];
    await expect.poll(async () => (await palisade(refused, { env })).output).toMatch(line);
    await client.put("orders/42", { n: 3 }, { token: lease.token });
    const { output } = await palisade([...refused, "--no-color"], { env, columns: 200 });
    expect(output).toMatch(/ {2}fencing_token_stale {2}.* {2}2 +\d{4}-\S+Z\n2 refused writes of this gateway/);
    expect(output).toContain("fencing_token_stale: its holder lost the lease without noticing");
    expect((await palisade(["fence", "orders/42"], { env })).output).toMatch(
      new RegExp(`\nLast moved by hand from ${lease.token} to \\d+ by anonymous, \\S+Z: host is gone\n`),
    );

    const again = await palisade(["force-release", "orders/42", "--reason", "again", "--yes"], { env, columns: 100 });
    expect(again).toMatchObject({ exitCode: 1, output: expect.stringContaining("Nothing was changed") });
  });

  test("force-release asks for the name on a terminal, and changes nothing without it", async ({ redis, locker }) => {
    const env = environment(redis);
    const lease = await locker.acquire("jobs/1");
    const force = ["force-release", "jobs/1", "--reason", "x"];
    expect(await palisade(force, { env })).toMatchObject({ exitCode: 2, errors: expect.stringContaining("give --yes") });
    expect(await palisade(force, { env, columns: 80, typed: "yes\n" })).toMatchObject({ exitCode: 1, output: "Nothing was changed.\n" });
    await lease.extend();
    const done = await palisade(force, { env, columns: 80, typed: "jobs/1\n" });
    expect(done).toMatchObject({ exitCode: 0, output: expect.stringContaining("No gateway was given") });
    await expect(lease.extend()).rejects.toMatchObject({ code: "LEASE_LOST" });
  });

  test("L2 force-release ends, and changes nothing, by Ctrl-C or the end of the input at its question", async ({ redis, locker }) => {
    const lease = await locker.acquire("jobs/2");
    const force = ["force-release", "jobs/2", "--reason", "x"];
    for (const typed of ["\u0003", "\u0004"])
      expect(await palisade(force, { env: environment(redis), columns: 80, typed })).toMatchObject({
        exitCode: 1,
        output: "Nothing was changed.\n",
      });
    expect(lease.held).toBe(true);
    expect((await lease.extend()).outcome).toBe("renewed");
  });

  test("issued, fence, history and raise answer from the lock and the gateway", async ({ redis, locker, gateway }) => {
    const env = { ...environment(redis), PALISADE_GATEWAY_URL: gateway.url };
    const lease = await locker.acquire("orders/7");
    await createGatewayClient({ url: gateway.url }).put("orders/7", { n: 1 }, { lease });
    const { token } = lease;
    expect(await palisade(["issued", "orders/7", String(token)], { env })).toMatchObject({ exitCode: 0 });
    expect(await palisade(["issued", "orders/7", "999999999999999"], { env })).toMatchObject({
      exitCode: 1,
      output: expect.stringContaining("was never issued"),
    });
    expect((await palisade(["fence", "orders/7"], { env })).output).toContain(`stands at ${token}, revision 1`);
    const history = await palisade(["history", "orders/7", "--json"], { env });
    expect(JSON.parse(history.output)).toMatchObject({ resource: "orders/7", entries: [{ rev: 1, op: "put", token }] });
    const raised = await palisade(["raise", "orders/7", String(token + 5), "--reason", "drill"], { env });
    expect(raised).toMatchObject({ exitCode: 0, output: expect.stringContaining(`stands at ${token + 5}; it stood at ${token}`) });
    expect(await palisade(["fence", "nowhere/1"], { env })).toMatchObject({ exitCode: 1, errors: expect.stringContaining("not_found") });
  });
});

test("ls shows first what most wait for, and how many wait for how many", async ({ redis, locker }) => {
  const leases = [await locker.acquire("a/quiet"), await locker.acquire("b/busy"), await locker.acquire("c/busiest")];
  // Of one process the first of those that wait stands for all.
  await using one = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
  await using other = createLocker({ nodes: redis.urls, namespace: redis.namespace, ...patient });
  const waiting = [one.acquire("b/busy"), one.acquire("c/busiest"), other.acquire("c/busiest")];
  const shown = async () => (await palisade(["ls"], { env: environment(redis), columns: 100 })).output;
  await expect.poll(shown).toMatch(/\nc\/busiest .*\nb\/busy .*\na\/quiet .*\n3 resources are held, 3 wait for 2 of them\n$/);
  const limited = await palisade(["ls", "--limit", "1"], { env: environment(redis) });
  expect(limited.output).toMatch(/^c\/busiest\t[^\n]*\n$/);
  await Promise.all([...leases.map((lease) => lease.release()), ...waiting.map(async (next) => (await next).release())]);
});

test("doctor says one thing once, with all nodes of which it is so, and its remedy once", async ({ fleet }) => {
  const { nodes, urls } = await fleet({ nodes: 3 });
  await using locker = createLocker({ nodes: urls, ...patient });
  await locker.ready();
  for (const node of nodes) await node.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  const { output } = await palisade(["doctor", "--no-color"], { env: { PALISADE_REDIS_URLS: urls.join(",") }, columns: 200 });
  expect(output.match(/allkeys-lru/g)).toHaveLength(1);
  expect(output).toMatch(/^warning {2}n1, n2, n3: maxmemory-policy is allkeys-lru/m);
  expect(output.match(/CONFIG SET maxmemory-policy noeviction/g)).toHaveLength(1);
});

test("a name that steers terminals is shown, never obeyed", async ({ redis, locker }) => {
  const name = "orders/\u001b[2J\u202e42";
  await locker.acquire(name);
  const { output } = await palisade(["ls", "--no-color"], { env: environment(redis), columns: 100 });
  expect(output).toContain("orders/\\u{1b}[2J\\u{202e}42");
  expect(output).not.toContain("\u001b");
});

test("nodes and doctor say which node is silent, without a password, and when nothing can be granted", async ({ fleet }) => {
  const { nodes, urls } = await fleet({ nodes: 3 });
  await Promise.all(nodes.map((node) => node.cli("CONFIG", "SET", "requirepass", "s3cret")));
  const env = { PALISADE_REDIS_URLS: urls.map((url) => url.replace("redis://", "redis://:s3cret@")).join(",") };
  const shown = async (args: readonly string[]) => await palisade(args, { env, columns: 100 });
  expect(await shown(["nodes"])).toMatchObject({ exitCode: 0, output: expect.stringContaining("3 of 3 nodes vote") });
  await nodes[0]?.kill();
  const two = await shown(["nodes"]);
  expect(two).toMatchObject({ exitCode: 0, output: expect.stringContaining("2 of 3 nodes vote") });
  expect(two.output).toMatch(/n1 .*silent/);
  expect(await shown(["doctor"])).toMatchObject({ exitCode: 1, output: expect.stringContaining("n1") });
  await nodes[1]?.kill();
  const none = await shown(["nodes"]);
  expect(none).toMatchObject({ exitCode: 1, output: expect.stringContaining("no lease can be granted now") });
  expect(await shown(["issued", "r", "5", "--timeout", "1"])).toMatchObject({ exitCode: 3 });
  expect(`${two.output}${none.output}${none.errors}`).not.toContain("s3cret");
});

test("nodes tells of each latency, clock, memory and durability, on any width; of a silent one only why", async ({ fleet }) => {
  const { nodes, urls } = await fleet({ nodes: 3 });
  await using locker = createLocker({ nodes: urls, ...patient });
  await locker.ready();
  await nodes[0]?.shiftClock(90_000);
  await nodes[1]?.cli("CONFIG", "SET", "maxmemory", "64mb");
  await nodes[1]?.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
  await nodes[2]?.kill();
  const shown = async (columns: number | undefined, flags: readonly string[] = []) =>
    (await palisade(["nodes", ...flags], { env: { PALISADE_REDIS_URLS: urls.join(",") }, ...(columns === undefined ? {} : { columns }) }))
      .output;
  const wide = await shown(120, ["--no-color"]);
  expect(wide).toMatch(/^node +address +state +latency +clock +memory +durable +server +why\n/);
  expect(wide).toMatch(/\nn1 +\S+ +votes +\d+\.\d ms +\+\d{5} ms ±\d+ +\d+\.\d MB, no limit +yes +\d+\./);
  expect(wide).toMatch(/\nn2 .* of 64\.0 MB, allkeys-lru +yes /);
  expect(wide).toMatch(/\nn3 +\S+ +silent {2,}[^y]*ECONNREFUSED\n/);
  for (const line of (await shown(40, ["--no-color"])).split("\n")) expect(line.length).toBeLessThanOrEqual(40);
  expect((await shown(undefined)).split("\n").map((line) => line.split("\t").length)).toEqual([9, 9, 9, 1]);
  const [first, , third] = JSON.parse(await shown(undefined, ["--json"])).nodes;
  expect(first).toMatchObject({
    clockAheadMs: expect.any(Number),
    incarnation: expect.any(String),
    memory: { usedBytes: expect.any(Number) },
  });
  expect(Object.keys(third)).toEqual(["node", "address", "state", "reason"]);
});

test("M1 nodes shows each member beside its own address, in whichever order and number they are given", async ({ fleet }) => {
  const { nodes, urls } = await fleet({ nodes: 4 });
  const [a = "", b = "", c = "", d = ""] = urls;
  const hosts = urls.map((url) => new URL(url).host);
  await using locker = createLocker({ nodes: [a, b, c], ...patient, maxTtlMs: 60_000 });
  await locker.ready();
  await locker.fleet.reconfigure({ replace: hosts[0] ?? "", by: d });
  const shown = async (): Promise<string> => {
    const { output } = await palisade(["nodes", "--json"], { env: { PALISADE_REDIS_URLS: [c, b, a].join(",") } });
    const found = JSON.parse(output).nodes as { readonly address: string; readonly state: string }[];
    const lines = found.map(({ address, state }) => `${address}${state === "silent" ? " is silent" : ""}`);
    return lines.toSorted().join();
  };
  const members = hosts.slice(1).toSorted().join();
  await expect.poll(shown).toBe(members);
  await nodes[1]?.kill();
  await expect.poll(shown).toBe(members.replace(hosts[1] ?? "", `${hosts[1]} is silent`));
});

/** The program in this process, on a terminal without colours, until a signal that only it hears. */
function watchedOn({ columns, env }: { readonly columns: number; readonly env: Readonly<Record<string, string>> }) {
  const [input, output, errors] = [new PassThrough(), new PassThrough(), new PassThrough()];
  let text = "";
  output.on("data", (data: Buffer) => (text = `${text}${data}`.split("\u001b[H\u001b[2J\u001b[3J").at(-1) ?? ""));
  const terminal = { input, output: Object.assign(output, { isTTY: true, columns }), errors };
  const before = new Set(process.listeners("SIGTERM"));
  const ended = run({ ...terminal, args: ["watch", "--every", "0.2", "--no-color"], env });
  return {
    text: () => text,
    end: async () => {
      for (const listener of process.listeners("SIGTERM")) if (!before.has(listener)) listener("SIGTERM");
      expect(await ended).toBe(0);
    },
  };
}

test("watch as a program of its own prints each change, lives through a quorum that is lost for a while, and ends by SIGINT", async ({
  fleet,
  onTestFinished,
}) => {
  const { nodes, urls } = await fleet({ nodes: 3 });
  await using holder = createLocker({ nodes: urls, label: "worker-7", ...patient });
  const { token } = await holder.acquire("w", { ttlMs: 50_000 });
  const main = fileURLToPath(new URL("../../dist/main.js", import.meta.url));
  const child = startNode(main, ["watch", "--every", "0.2"], { name: "watch", env: { PALISADE_REDIS_URLS: urls.join(",") } });
  onTestFinished(async () => void (await child.kill()));
  await child.says(new RegExp(`\theld\tw\tworker-7\t${token}$`));
  const seen = watchedOn({ columns: 80, env: { PALISADE_REDIS_URLS: urls.join(",") } });
  await expect.poll(seen.text).toMatch(/\d\d:\d\d:\d\d {2}1 held; Ctrl-C ends\n$/);
  await Promise.all(nodes.slice(0, 2).map((node) => node.pause()));
  await child.says(/1 of 3 nodes answered/);
  await expect.poll(seen.text).toMatch(/\nw .*worker-7 [^\n]*\nOLD, as of \d\d:\d\d:\d\d {2}1 held; Ctrl-C ends\n$/);
  await seen.end();
  await Promise.all(nodes.slice(0, 2).map((node) => node.resume()));
  // The nodes that stood still are connected to again one after the other.
  const taken = () =>
    holder.fleet.forceRelease("w", { reason: "test" }).then(
      () => true,
      () => false,
    );
  await expect.poll(taken, { timeout: 30_000 }).toBe(true);
  await child.says(new RegExp(`\tended\tw\tworker-7\t${token}$`));
  child.signal("SIGINT");
  expect((await child.waitForExit()).code).toBe(0);
  await Promise.all(nodes.map((node) => node.kill()));
  const lost = await palisade(["watch", "--timeout", "1"], { env: { PALISADE_REDIS_URLS: urls.join(",") }, columns: 80 });
  expect(lost.exitCode).toBe(3);
});
