// Which nodes are one fleet, and what the doctor says: a locker that is configured for another
// fleet is kept silent, and risky settings are named.
import { describe, expect, test } from "@palisade/testkit/vitest";
import { keysOf } from "../../../src/protocol/verbs.js";
import { accept, admit, enter, openAdmission, promise, readFloor, readmit, retire } from "../../../src/redis/record.js";
import { asking, opened } from "./opened-fleet.js";

const namespace = "fleets";
const keys = keysOf(namespace);

describe("a locker that must not vote", () => {
  test("T1 is one that is older than the records of its fleet, which it neither founds over nor votes in", async ({ fleet }) => {
    const servers = await fleet({ nodes: 3 });
    await using early = await opened(servers.urls, { namespace });
    // A later version may lay out every field anew, so this one reads none of them.
    for (const node of servers.nodes) {
      const record = `{${namespace}}:node`;
      await node.cli("HSET", record, "format", "99", "admitted", "laid out anew", "size", "three", "floor", "-");
    }
    // The server may tell the fields of a hash in another order each time.
    const records = () =>
      Promise.all(servers.nodes.map(async (node) => ((await node.cli("HGETALL", `{${namespace}}:node`)) as string[]).toSorted()));
    const before = await records();
    await using late = await opened(servers.urls, { namespace });
    await early.node("n1").ask("inspect", { resources: ["a"] });
    for (const lock of [late, early]) {
      await expect.poll(() => lock.fleet.refusal).toMatchObject({ kind: "mismatch", code: "unknown_format" });
      expect(lock.fleet.refusal?.message).toMatch(/^n1 \(.*\) has a record of format 99, and this version of the lock knows 1; /);
      expect(await lock.node("n2").ask("grant", asking("a"))).toMatchObject({ kind: "unreachable" });
    }
    expect(await late.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "error", code: "unknown_format" }));
    expect(await records()).toEqual(before);
  });

  test("T1 changes no record of an unknown format, even if its status was read before", async ({ fleet }) => {
    const servers = await fleet({ nodes: 1 });
    const [node] = servers.nodes;
    const record = `{${namespace}}:node`;
    await node?.cli("HSET", record, "format", "99", "floor", "7");
    const given = { nonce: "t", id: "i", wallMs: 1, maxTtlMs: 1, sinceGeneration: 0, founding: "" };
    const memory = { runId: "r", nonce: "t", floor: 1, epoch: "e" };
    const roster = { generation: 1, members: [], maxTtlMs: 1, formerMaxTtlMs: 1 };
    const admitted = { ...memory, id: "i", fleet: "f", founding: "", durable: "durable" } as const;
    const calls = [
      openAdmission(given),
      readFloor("e", ""),
      admit({ ...admitted, roster }),
      readmit(memory),
      promise("", 1),
      accept({ noted: "", ballot: 1, roster, openForMs: 0, epoch: "e" }),
      enter({ roster, floor: 1, epoch: "e", sinceGeneration: 0 }),
      retire("f", roster),
    ];
    for (const { source, args } of calls) {
      expect(await node?.cli("EVAL", source, "2", keys.node, keys.marks, ...args).catch(String)).toContain("FORMAT");
    }
    expect(await node?.cli("HGETALL", record)).toEqual(["format", "99", "floor", "7"]);
  });

  test("is one whose nodes belong to different fleets", async ({ fleet }) => {
    const { urls } = await fleet({ nodes: 4 });
    const [first = "", second = "", third = "", fourth = ""] = urls;
    await using one = await opened([first, second], { namespace });
    await using other = await opened([third, fourth], { namespace });
    expect([one.fleet.refusal, other.fleet.refusal]).toEqual([undefined, undefined]);
    await using mixed = await opened([first, fourth], { namespace });
    expect(mixed.fleet.refusal?.message).toMatch(/^n1 \(.*\) belongs to fleet \S+, n2 \(.*\) to fleet \S+; /);
    expect(await mixed.fleet.probe()).toContainEqual(expect.objectContaining({ severity: "error", node: "fleet", code: "fleet_mismatch" }));
  });

  test("T1 asks no node that has gone to another fleet, until it is cleared", async ({ fleet }) => {
    const servers = await fleet({ nodes: 3 });
    const settings = { namespace, maxTtlMs: 50 };
    await (await opened(servers.urls, settings)).fleet.close();
    await servers.nodes[2]?.cli("DEL", `{${namespace}}:node`);
    const alone = await opened(servers.urls.slice(2), settings);
    await expect.poll(() => alone.fleet.state().admitted).toEqual(["n1"]);
    await alone.fleet.close();
    await using all = await opened(servers.urls, settings);
    expect(all.fleet.state().quarantined).toMatchObject([{ node: "n3", reason: expect.stringMatching(/^FLEET_MISMATCH/) }]);
    await servers.nodes[2]?.cli("DEL", `{${namespace}}:node`);
    await using later = await opened(servers.urls, settings);
    await expect.poll(() => later.fleet.state().admitted).toEqual(["n1", "n2", "n3"]);
  });

  test("is one for whom two URLs lead to one server, also if that shows only later", async ({ fleet }) => {
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

  test("is let in again by lockers that run, once the operator has cleared the server that belonged to another fleet", async ({
    fleet,
  }) => {
    const servers = await fleet({ nodes: 3 });
    const settings = { namespace, maxTtlMs: 50 };
    await (await opened(servers.urls, settings)).fleet.close();
    const clear = () => servers.nodes[2]?.cli("DEL", `{${namespace}}:node`);
    await clear();
    const elsewhere = await opened(servers.urls.slice(2), settings);
    await expect.poll(() => elsewhere.fleet.state().admitted).toEqual(["n1"]);
    await elsewhere.fleet.close();
    await using all = await opened(servers.urls, settings);
    expect(all.fleet.state()).toMatchObject({
      admitted: ["n1", "n2"],
      quarantined: [{ node: "n3", reason: expect.stringMatching(/or clear it$/) }],
    });
    await clear();
    await expect.poll(() => all.fleet.state().admitted).toEqual(["n1", "n2", "n3"]);
  });

  test("is one that wants longer leases than its fleet allows", async ({ fleet }) => {
    const { urls } = await fleet({ nodes: 3 });
    await using founder = await opened(urls, { namespace, maxTtlMs: 5_000 });
    await using greedy = await opened(urls, { namespace, maxTtlMs: 5_001 });
    expect(greedy.fleet.refusal).toMatchObject({
      kind: "ttl",
      code: "max_ttl",
      message: expect.stringMatching(/^maxTtlMs is 5001, but .* 5000 ms/),
    });
    await using modest = await opened(urls, { namespace, maxTtlMs: 10 });
    await using undecided = await opened(urls, { namespace, maxTtlMs: undefined });
    expect([founder, modest, undecided].map(({ fleet: each }) => each.state())).toEqual(
      [founder, modest, undecided].map(() =>
        expect.objectContaining({ refusal: undefined, maxTtlMs: 5_000, admitted: ["n1", "n2", "n3"] }),
      ),
    );
  });

  test("is not one that found a fleet without asking for a longest lease: the fleet allows 60 000 ms", async ({ fleet }) => {
    const { urls } = await fleet({ nodes: 1 });
    await using lock = await opened(urls, { namespace, maxTtlMs: undefined });
    expect(lock.fleet.state()).toMatchObject({ maxTtlMs: 60_000, admitted: ["n1"] });
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

  test("T1 names a node whose tokens are ahead of what a fleet that lost all memory begins with", async ({ fleet }) => {
    const servers = await fleet({ nodes: 1 });
    await using lock = await opened(servers.urls, { namespace });
    const ahead = async () => (await lock.fleet.probe()).filter(({ code }) => code === "floor_ahead");
    expect(await ahead()).toEqual([]);
    await servers.nodes[0]?.cli("HSET", `{${namespace}}:node`, "floor", String((Date.now() + 3_600_000) * 100));
    expect(await ahead()).toMatchObject([
      { node: "n1", severity: "warning", message: expect.stringMatching(/^its tokens are 3[56]\d{7} ahead/) },
    ]);
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
