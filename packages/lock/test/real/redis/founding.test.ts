// T1, L2 where a locker looks slowly: it began before others admitted a node, and goes on after
// that node has forgotten what it granted.
import type { RedisFleet } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { scripts } from "../../../src/redis/lua.generated.js";
import { asking, heldBack, type Opened, open, opened } from "./opened-fleet.js";

const namespace = "founding";
const maxTtlMs = 400;
const options = { namespace, maxTtlMs } as const;

interface Story extends AsyncDisposable {
  readonly servers: RedisFleet;
  readonly quick: Opened;
  readonly slow: Opened;
}

/** The slow one has marked all nodes but the second when the quick one founds the fleet. */
async function story(fleet: StartFleet, meanwhile: (servers: RedisFleet, quick: Opened) => Promise<void>): Promise<Story> {
  const servers = await fleet({ nodes: 3, appendfsync: "no", config: { appendonly: "no", save: "" } });
  const gate = heldBack(scripts.openAdmission, 2);
  const slow = open(servers.urls, { ...options, openLink: gate.openLink });
  await gate.reached;
  for (const node of [servers.nodes[0], servers.nodes[2]])
    await expect.poll(() => node?.cli("HEXISTS", `{${namespace}}:node`, "ticket")).toBe(1);
  const quick = await opened(servers.urls, options);
  expect(quick.fleet.state().admitted).toEqual(["n1", "n2", "n3"]);
  await meanwhile(servers, quick);
  gate.open();
  return {
    servers,
    quick,
    slow,
    async [Symbol.asyncDispose]() {
      await Promise.all([quick.fleet.close(), slow.fleet.close()]);
    },
  };
}

describe("a locker that began to look before its fleet was founded", () => {
  test("L2 does not believe a node at once that has forgotten leases since", async ({ fleet }) => {
    const held = asking("a", maxTtlMs);
    let forgottenAt = 0;
    await using told = await story(fleet, async (servers, quick) => {
      expect(await quick.node("n2").ask("grant", held)).toMatchObject({ kind: "granted" });
      await servers.nodes[1]?.cli("FLUSHALL");
      forgottenAt = performance.now();
    });
    const { quick, slow } = told;
    const { way } = await Promise.race([quick, slow].map((lock) => lock.fromNow().heard("admitted", "n2")));
    expect(performance.now() - forgottenAt).toBeGreaterThanOrEqual(maxTtlMs);
    expect(way).toBe("rebuilt");
  });

  test("T1 does not found another fleet", async ({ fleet }) => {
    await using told = await story(fleet, async (servers) => {
      await servers.nodes[1]?.cli("FLUSHALL");
    });
    const { quick, slow, servers } = told;
    await expect.poll(() => slow.fleet.state().admitted, { timeout: 5_000 }).toEqual(["n1", "n2", "n3"]);
    await expect.poll(() => quick.fleet.state().admitted, { timeout: 5_000 }).toEqual(["n1", "n2", "n3"]);
    expect([slow.fleet.refusal, quick.fleet.refusal]).toEqual([undefined, undefined]);
    const fleets = await Promise.all(servers.nodes.map((node) => node.cli("HGET", `{${namespace}}:node`, "fleet")));
    expect(new Set(fleets).size).toBe(1);
  });
});

/** The run of its server stays the same; its record is the other's. */
async function copyMemory(servers: RedisFleet, from: number, to: number): Promise<void> {
  const { hostname, port } = new URL(servers.urls[from] ?? "");
  const target = servers.nodes[to];
  await servers.nodes[from]?.cli("CONFIG", "SET", "repl-diskless-sync-delay", "0");
  await target?.cli("REPLICAOF", hostname, port);
  await expect.poll(() => target?.cli("INFO", "replication"), { timeout: 10_000 }).toContain("master_link_status:up");
  await target?.cli("REPLICAOF", "NO", "ONE");
}

describe("a locker that saw how a node stood before its memory was lost", () => {
  const losses = [
    ["nothing", (servers: RedisFleet) => servers.nodes[1]?.cli("FLUSHALL")],
    ["a copy of another node's memory", (servers: RedisFleet) => copyMemory(servers, 0, 1)],
  ] as const;
  test.for(losses)("L2 does not take that for what it finds there later: %s", async ([, lose], { fleet }) => {
    const servers = await fleet({ nodes: 3, appendfsync: "always" });
    const first = await opened(servers.urls, options);
    await first.fleet.close();
    await servers.nodes[1]?.restart();
    const gate = heldBack(scripts.openAdmission, 2);
    await using slow = open(servers.urls, { ...options, openLink: gate.openLink });
    await gate.reached;
    await using quick = await opened(servers.urls, options);
    expect(quick.events).toContainEqual(expect.objectContaining({ kind: "admitted", node: "n2", way: "durable" }));
    expect(await quick.node("n2").ask("grant", asking("a", maxTtlMs))).toMatchObject({ kind: "granted" });
    await lose(servers);
    const forgottenAt = performance.now();
    const later = [quick, slow].map((lock) => lock.fromNow());
    gate.open();
    const { way } = await Promise.race(later.map((reports) => reports.heard("admitted", "n2")));
    expect(performance.now() - forgottenAt).toBeGreaterThanOrEqual(maxTtlMs);
    expect(way).toBe("rebuilt");
  });

  test("T1 proposes no floor of the time before, however long its question was under way", async ({ fleet }) => {
    const servers = await fleet({ nodes: 1, appendfsync: "no", config: { appendonly: "no", save: "" } });
    const gate = heldBack(scripts.openAdmission, 1);
    await using slow = open(servers.urls, { ...options, openLink: gate.openLink });
    await gate.reached;
    const [node] = servers.nodes;
    await node?.shiftClock(3_600_000);
    gate.open();
    const { floor } = await slow.heard("admitted", "n1");
    expect(floor).toBeGreaterThanOrEqual((Date.now() + 3_590_000) * 100);
  });
});
