// What the doctor says of real servers: of their settings, and where a node refuses what the lock needs. Each
// command of the requests is executed for it, by a lock that is taken and released.
import { describe, expect, test } from "./lock-test.js";
import { opened } from "./redis/opened-fleet.js";

const namespace = "fleets";

/** Of the requests; the others belong to the admission of a node. */
const OF_REQUESTS = "evalsha set incr get exists pttl pexpire del hset publish zadd zcard zrange zrank zrem zscore".split(" ");
const OF_ADMISSIONS = "eval info time hmget hget hdel hset del".split(" ");

/** The nodes for a user without this command. */
async function without(command: string, nodes: readonly { cli(...words: string[]): Promise<unknown> }[], urls: readonly string[]) {
  const user = `no-${command}`;
  await Promise.all(nodes.map((node) => node.cli("ACL", "SETUSER", user, "on", ">p", "~*", "&*", "+@all", `-${command}`)));
  return urls.map((url) => url.replace("redis://", `redis://${user}:p@`));
}

const missing = expect.objectContaining({ severity: "error", code: "acl", message: expect.stringMatching(/NOPERM: the user lacks/) });

describe("the doctor", () => {
  // Each in a namespace of its own, which is a fleet of its own.
  test("names each missing right on nodes that are admitted", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    const examined = OF_REQUESTS.map(async (command) => {
      await open({ nodes: urls, namespace: command }).ready();
      const poor = open({ nodes: await without(command, nodes, urls), namespace: command });
      expect(await poor.fleet.doctor(), command).toContainEqual(missing);
    });
    await Promise.all(examined);
  });

  test("names each missing right on new nodes, and so does the refusal of a call", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    const startedAt = performance.now();
    const examined = OF_ADMISSIONS.map(async (command) => {
      const locker = open({ nodes: await without(command, nodes, urls), namespace: command, waitMs: 200 });
      expect(await locker.fleet.doctor(), command).toContainEqual(missing);
      await expect(locker.acquire("r")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: expect.stringContaining("NOPERM") });
    });
    await Promise.all(examined);
    // Not twice the time of a first contact.
    expect(performance.now() - startedAt).toBeLessThan(15_000);
  });

  const refusals = [
    ["maxmemory", "OOM: out of memory (maxmemory) and refuses writes"],
    ["min-replicas-to-write", "NOREPLICAS: refuses writes because too few replicas follow it"],
  ] as const;
  test.for(refusals)(
    "says why new nodes refuse to be founded, and so does a call, until they do not: %s",
    async ([setting, cause], { fleet, open }) => {
      const { urls, nodes } = await fleet({ nodes: 3 });
      await Promise.all(nodes.map((node) => node.cli("CONFIG", "SET", setting, "1")));
      const locker = open({ nodes: urls, waitMs: 200 });
      const told = expect.stringContaining(cause);
      await expect(locker.acquire("r")).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
      await expect(locker.ready()).rejects.toMatchObject({ code: "LOCK_NO_QUORUM", message: told });
      const findings = (await locker.fleet.doctor()).filter(({ severity }) => severity === "error");
      expect(findings).toEqual(["n1", "n2", "n3"].map((node) => expect.objectContaining({ node, code: "refuses_writes", message: told })));
      await Promise.all(nodes.map((node) => node.cli("CONFIG", "SET", setting, "0")));
      await expect.poll(async () => (await locker.tryAcquire("r")).ok, { timeout: 30_000 }).toBe(true);
    },
  );

  test("says that releases are not heard, and that writes are refused", async ({ fleet, open }) => {
    const { urls, nodes } = await fleet({ nodes: 1 });
    await open({ nodes: urls }).ready();
    expect(await open({ nodes: await without("subscribe", nodes, urls) }).fleet.doctor()).toContainEqual(
      expect.objectContaining({ code: "subscription" }),
    );
    const locker = open({ nodes: urls });
    expect((await locker.fleet.doctor()).filter(({ severity }) => severity !== "info")).toEqual([]);
    await nodes[0]?.cli("CONFIG", "SET", "min-replicas-to-write", "1");
    expect(await locker.fleet.doctor()).toContainEqual(expect.objectContaining({ severity: "error", code: "refuses_writes" }));
  });

  test("finds nothing wrong with durable nodes that evict nothing", async ({ fleet }) => {
    const { urls } = await fleet({
      nodes: 3,
      config: { maxmemory: "100mb", "maxmemory-policy": "noeviction" },
    });
    await using lock = await opened(urls, { namespace });
    expect(await lock.fleet.probe()).toEqual([]);
  });

  test("names eviction, missing durability, a clock that is off, a quarantined and an unreachable node, and an even fleet", async ({
    fleet,
  }) => {
    const servers = await fleet({ nodes: 4 });
    await using lock = await opened(servers.urls, { namespace, maxTtlMs: 60_000 });
    const [first, second, third, fourth] = servers.nodes;
    await first?.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru");
    await first?.cli("CONFIG", "SET", "maxmemory", "100mb");
    await second?.cli("CONFIG", "SET", "appendfsync", "everysec");
    await second?.shiftClock(-60_000);
    const later = lock.fromNow();
    await fourth?.kill();
    await later.heard("disconnected", "n4");
    await third?.cli("FLUSHALL");
    await lock.node("n3").ask("inspect", { resources: ["a"] });
    const findings = await lock.fleet.probe();
    expect(findings.map(({ severity, node, code }) => `${node}: ${severity} ${code}`).toSorted()).toEqual([
      "fleet: info even_size",
      "n1: error eviction_policy",
      "n2: info not_durable",
      "n2: warning clock_skew",
      "n3: warning quarantined",
      "n4: error unreachable",
    ]);
    const messageOf = (code: string) => findings.find((finding) => finding.code === code)?.message;
    expect(messageOf("even_size")).toBe("4 nodes tolerate 1 failures, as many as 3 do");
    expect(messageOf("eviction_policy")).toMatch(/^maxmemory-policy is allkeys-lru: under memory pressure it deletes locks/);
    expect(Number(/its clock is (\d+) ms behind ours/.exec(messageOf("clock_skew") ?? "")?.[1])).toBeGreaterThan(30_000);
    expect(messageOf("unreachable")).toMatch(/: (ECONNREFUSED|ECONNRESET|connection lost)$/);
    for (const { remedy } of findings) expect(remedy).toMatch(/\.$/);
  });

  test("names replicas, which make a restart count as a loss of memory", async ({ fleet }) => {
    const servers = await fleet({ nodes: 2, config: { "repl-diskless-sync-delay": "0" } });
    const master = servers.node("n1");
    await servers.node("n2").follow(master);
    await expect.poll(async () => String(await master.cli("INFO", "replication"))).toContain("connected_slaves:1");
    await using lock = await opened(servers.urls.slice(0, 1), { namespace });
    expect(await lock.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "info", node: "n1", code: "replicated" }));
    expect(await master.cli("HGET", `{${namespace}}:node`, "durable")).toBe("0");
  });
});
