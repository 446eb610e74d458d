// The same two stories for the naive lock and for Palisade, judged by the same checkers: what a fault run finds is found where the protection is missing, and only
// there. The stories are scripted, so that they happen every time.
import { once } from "node:events";
import type { FleetWay, RedisFleet } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import type { Tenure } from "../../../src/history/lease-record.js";
import { judge } from "../../../src/profiles/lock/checkers.js";
import { type ClientOrders, RESOURCE } from "../../../src/profiles/lock/client-words.js";
import { type Contender, type Held, palisade } from "../../../src/profiles/lock/contender.js";
import { naive } from "../../../src/profiles/lock/naive.js";
import { spend } from "../../../src/profiles/lock/stay.js";

const locks = { naive, palisade };
const quick = { renew: false, holdMs: 0 };

/** Two clients, each with its own way to the nodes. */
interface Scene {
  readonly running: RedisFleet;
  readonly ways: readonly [FleetWay, FleetWay];
  take(client: 0 | 1): Promise<Tenure>;
  /** Holds it, without looking at the clock, while something else happens. */
  holdDuring<T>(client: 0 | 1, happens: () => Promise<T>): Promise<readonly [Tenure, T]>;
}

interface Story {
  readonly kind: keyof typeof locks;
  readonly ttlMs: number;
  readonly play: (scene: Scene) => Promise<Tenure[]>;
}

/** The promises that were broken. */
async function broken(fleet: StartFleet, { kind, ttlMs, play }: Story): Promise<string[]> {
  const running = await fleet({ clock: "real" });
  const ways = [await running.anotherWay(), await running.anotherWay()] as const;
  const contenders = ways.map(({ urls }, client) => locks[kind](orders(urls, client, { kind, ttlMs })));
  await Promise.all(contenders.map((contender) => contender.ready()));
  const acquire = (client: number): Promise<Held> => untilHeld(contenders[client] as Contender, ttlMs);
  const tenures = await play({
    running,
    ways,
    take: async (client) =>
      spend(await acquire(client), { how: "briefly", ttlMs, ...quick }, { client, sleepFor: () => Promise.resolve() }),
    holdDuring: async (client, happens) => {
      const held = await acquire(client);
      const begin = new AbortController();
      const event = once(begin.signal, "abort").then(happens);
      const sleepFor = async (): Promise<void> => {
        begin.abort();
        await event;
      };
      const tenure = await spend(held, { how: "asleep", ttlMs, ...quick }, { client, sleepFor });
      return [tenure, await event];
    },
  });
  await Promise.all(contenders.map((contender) => contender.close()));
  // The first client does not look at its clock: as if it had been stopped all the time.
  const stalls = [{ client: 0, fromAt: 0, untilAt: Number.POSITIVE_INFINITY }];
  return [...new Set(judge({ tenures, stalls, samples: [], leaps: [], leftBehind: [] }).map(({ promise }) => promise))].sort();
}

/** Asks again when it was refused, as every client of a run does: how long a machine may stand still while somebody waits is no part of the stories. */
async function untilHeld(contender: Contender, ttlMs: number): Promise<Held> {
  for (;;) {
    try {
      return await contender.acquire({ ttlMs, renew: false });
    } catch (error) {
      if ((error as { code?: string }).code === undefined) throw error;
    }
  }
}

// Nothing is ever late here but what is gone, so that there is one attempt where one is meant.
function orders(urls: readonly string[], client: number, { kind, ttlMs }: Pick<Story, "kind" | "ttlMs">): ClientOrders {
  return {
    client,
    kind,
    seed: "scripted",
    urls,
    leases: 1,
    longStays: 0,
    ttlMs,
    longStayTtlMs: ttlMs,
    maxTtlMs: ttlMs,
    nodeTimeoutMs: ttlMs / 2,
  };
}

async function unreachable(way: FleetWay, nodes: readonly number[]): Promise<void> {
  await Promise.all(nodes.map((node) => way.proxies[node]?.refuse()));
}

/** The first client's quorum and the second's share one node, which is not the one that has counted furthest. */
async function countersApart({ running, ways, take }: Scene): Promise<Tenure[]> {
  const furthest = 1_000 + Number((await running.nodes[0]?.cli("HGET", "{palisade}:node", "floor")) ?? 0);
  await running.nodes[0]?.cli("SET", `{palisade}:token:${RESOURCE}`, furthest);
  await unreachable(ways[0], [3, 4]);
  await unreachable(ways[1], [0, 1]);
  const first = await take(0);
  await running.nodes[4]?.cli("SET", `{palisade}:token:${RESOURCE}`, first.token - 2);
  return [first, await take(1), await take(1)];
}

/** Two of the three nodes that granted the lease lose their memory while it is held. */
async function forgottenGrants({ running, ways, holdDuring, take }: Scene): Promise<Tenure[]> {
  await unreachable(ways[0], [3, 4]);
  const [first, second] = await holdDuring(0, async () => {
    await Promise.all([1, 2].map((node) => running.nodes[node]?.restart({ forget: true })));
    return take(1);
  });
  return [first, second];
}

describe("counters that have run apart", () => {
  test("give the naive lock smaller tokens later, and one token twice", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "naive", ttlMs: 10_000, play: countersApart })).toEqual(["T1", "T2"]);
  });

  test("T1 do not matter to the lock that seals", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "palisade", ttlMs: 10_000, play: countersApart })).toEqual([]);
  });
});

describe("nodes that forget a grant", () => {
  test("give the naive lock two holders at one time", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "naive", ttlMs: 10_000, play: forgottenGrants })).toContain("L2");
  });

  test("L2 are kept out of the vote until the lease that they forgot is over", async ({ fleet }) => {
    expect(await broken(fleet, { kind: "palisade", ttlMs: 2_000, play: forgottenGrants })).toEqual([]);
  });
});
