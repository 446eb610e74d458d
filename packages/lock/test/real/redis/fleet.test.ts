// What the doctor says of real servers and their settings, and two ways to one of them. Which nodes are one
// fleet is told in simulated time (unit/redis/admission/fleet.test.ts).
import { describe, expect, test } from "@palisade/testkit/vitest";
import { asking, opened } from "./opened-fleet.js";

const namespace = "fleets";

describe("a locker that must not vote", () => {
  test("T2 is one for whom two URLs lead to one server, also if that shows only later", async ({ fleet }) => {
    const servers = await fleet({ nodes: 2 });
    const another = await servers.nodes[0]?.anotherWay();
    await another?.refuse();
    const url = `redis://127.0.0.1:${another?.port}`;
    await using lock = await opened([...servers.urls, url], { namespace });
    expect(lock.fleet.refusal).toBe(undefined);
    await another?.heal();
    await lock.heard("fleet_refused");
    expect(lock.fleet.refusal).toMatchObject({ kind: "mismatch", code: "same_server" });
    expect(lock.fleet.refusal?.message).toMatch(/^n1 \(.*\) and n3 \(.*\) are one server \(run_id [0-9a-f]{8}…\), which would vote twice/);
    expect(await lock.node("n3").ask("grant", asking("a"))).toMatchObject({
      kind: "unreachable",
      cause: expect.stringContaining("FLEET_MISMATCH"),
    });
    expect(await servers.nodes[0]?.cli("HEXISTS", `{${namespace}}:node`, "admitted")).toBe(0);
  });
});

describe("the doctor", () => {
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
