// The same scripts for the unsealed lock and for Palisade, judged by the same checkers: what a fault
// run finds is found where the protection is missing, and only there. The scripts make it happen
// every time.
import { once } from "node:events";
import type { FleetWay, RedisFleet } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { judge } from "../../src/checkers/judge.js";
import { runCommand } from "../../src/command.js";
import { emptyHistory, type LeaseRecord, type Line, leasesOf } from "../../src/history.js";
import { lockCommand } from "../../src/runs/profiles.js";
import { type Hold, hold, RESOURCE, unsealedLock } from "../../src/traffic/one-lock.js";
import { type HeldLease, palisadeLock, RecordedLock } from "../../src/traffic/recorded-lock.js";

const locks = { unsealed: unsealedLock, palisade: palisadeLock };

/** Two clients, each with its own links to the nodes. */
interface Scene {
  readonly running: RedisFleet;
  readonly ways: readonly [FleetWay, FleetWay];
  /** Holds it briefly; the token. */
  take(client: 0 | 1): Promise<number>;
  /** Holds it, without looking at the clock, while something else happens. */
  holdDuring(client: 0 | 1, happens: () => Promise<unknown>): Promise<void>;
}

interface Script {
  readonly kind: keyof typeof locks;
  readonly ttlMs: number;
  /** The nodes in the list of each client, by their places; all by default. */
  readonly lists?: readonly [readonly number[], readonly number[]];
  readonly play: (scene: Scene) => Promise<void>;
}

/** The promises that were broken. */
async function broken(fleet: StartFleet, { kind, ttlMs, lists, play }: Script): Promise<string[]> {
  const running = await fleet({ clock: "real" });
  const ways = [await running.anotherWay(), await running.anotherWay()] as const;
  const lines: [Line[], Line[]] = [[], []];
  // No answer is late here but of what is gone, so that there is one attempt where one is meant.
  const times = { ttlMs, maxTtlMs: ttlMs, nodeTimeoutMs: ttlMs / 2 };
  const clients: RecordedLock[] = [];
  for (const [client, { urls }] of ways.entries()) {
    const lock = locks[kind](lists?.[client]?.flatMap((node) => urls[node] ?? []) ?? urls, { ...times, label: `client ${client}` });
    const recorded = new RecordedLock(lock, { write: (line) => void lines[client]?.push(line) });
    clients.push(recorded);
    // The first one founds the fleet.
    await recorded.ready();
  }
  const take = async (client: 0 | 1, how: Hold["how"], pause: () => Promise<void>): Promise<number> => {
    const lease = await untilHeld(clients[client] as RecordedLock, ttlMs);
    await hold(lease, { how, ttlMs, holdMs: 0 }, { pause });
    return lease.token;
  };
  await play({
    running,
    ways,
    take: (client) => take(client, "briefly", () => Promise.resolve()),
    holdDuring: async (client, happens) => {
      const held = new AbortController();
      const event = once(held.signal, "abort").then(happens);
      await take(client, "stopped past its end", async () => {
        held.abort();
        await event;
      });
    },
  });
  await Promise.all(clients.map((client) => client.close()));
  const leases = lines.flatMap((all, client): LeaseRecord[] => leasesOf({ author: `c${client}.0`, client, lines: all }));
  // The first client does not look at its clock: as if it had been stopped all the time.
  const pauses = [{ client: 0, fromAt: 0, untilAt: Number.POSITIVE_INFINITY }];
  return [...new Set(judge({ ...emptyHistory, leases, pauses }).map(({ promise }) => promise))].sort();
}

/**
 * Asks again when it was refused, as every client of a run does: on a slow machine waiting takes
 * longer than the scripts allow for.
 */
async function untilHeld(lock: RecordedLock, ttlMs: number): Promise<HeldLease> {
  for (;;) {
    try {
      return await lock.acquire(RESOURCE, { ttlMs, waitMs: 3_000 });
    } catch (error) {
      if ((error as { code?: string }).code === undefined) throw error;
    }
  }
}

async function unreachable(way: FleetWay, nodes: readonly number[]): Promise<void> {
  await Promise.all(nodes.map((node) => way.proxies[node]?.refuse()));
}

/** The quorums of both clients share one node, which is not the one that counted furthest. */
async function countersApart({ running, ways, take }: Scene): Promise<void> {
  const furthest = 1_000 + Number((await running.nodes[0]?.cli("HGET", "{palisade}:node", "floor")) ?? 0);
  await running.nodes[0]?.cli("SET", `{palisade}:token:${RESOURCE}`, furthest);
  await unreachable(ways[0], [3, 4]);
  await unreachable(ways[1], [0, 1]);
  const token = await take(0);
  await running.nodes[4]?.cli("SET", `{palisade}:token:${RESOURCE}`, token - 2);
  await take(1);
  await take(1);
}

/** Two of the three nodes that granted the lease lose their memory while it is held. */
async function forgottenGrants({ running, ways, holdDuring, take }: Scene): Promise<void> {
  await unreachable(ways[0], [3, 4]);
  await holdDuring(0, async () => {
    await Promise.all([1, 2].map((node) => running.nodes[node]?.restart({ forget: true })));
    await take(1);
  });
}

/** Each client reaches two nodes of its own list of three. */
async function twoMajorities({ ways, holdDuring, take }: Scene): Promise<void> {
  await unreachable(ways[0], [1]);
  await holdDuring(0, () => take(1));
}

describe("counters that have run apart", () => {
  test("give the unsealed lock smaller tokens later, and one token twice", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "unsealed", ttlMs: 10_000, play: countersApart })).toEqual(["T1", "T2"]);
  });

  test("T1 do not matter to the lock that seals", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "palisade", ttlMs: 10_000, play: countersApart })).toEqual([]);
  });
});

describe("nodes that forget a grant", () => {
  test("give the unsealed lock two holders at one time", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "unsealed", ttlMs: 10_000, play: forgottenGrants })).toContain("L2");
  });

  test("L2 are kept out of the vote until the lease that they forgot is over", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "palisade", ttlMs: 2_000, play: forgottenGrants })).toEqual([]);
  });
});

describe("lists of nodes that each have a majority of their own", () => {
  const lists = [
    [0, 1, 2],
    [0, 1, 3],
  ] as const;

  test("give a lock that counts the votes of any node two holders at one time", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "unsealed", ttlMs: 10_000, lists, play: twoMajorities })).toContain("L2");
  });

  test("M1 L2 have one holder where the nodes say who votes", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "palisade", ttlMs: 2_000, lists, play: twoMajorities })).toEqual([]);
  });
});

// With processes, for seconds; a failure prints the command that draws the same faults again.
test("T1 T2 L1 L2 nothing is broken while nodes, links and clients break at random", { timeout: 120_000 }, async () => {
  const asked = ["--processes", "4", "--leases", "15", "--minutes", "0.5"];
  expect(await runCommand(lockCommand, asked)).toBe(0);
});
