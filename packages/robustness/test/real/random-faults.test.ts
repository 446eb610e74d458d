// Four lockers want one resource for a second or two, each with its own links to five nodes, while
// nodes are killed, wiped and stopped and links break at random. What they saw is judged
// afterwards. `npm run faults` does the same with processes, for longer. A failure names the seed;
// `PALISADE_SEED=<seed> npx vitest run random-faults` draws the same faults again.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LockError } from "@palisade/lock";
import { type FleetWay, type RedisFleet, scratchFolder } from "@palisade/testkit";
import { describe, expect, type StartFleet, test } from "@palisade/testkit/vitest";
import { overlaps, repeatedTokens, tokensAgainstTime, toldTooLate } from "../../src/checkers/leases.js";
import { Journal, leasesOf, linesOf, pausesOf } from "../../src/history/history.js";
import type { LeaseRecord, Pause } from "../../src/history/records.js";
import { lockKeys, readmitted } from "../../src/servers/node-state.js";
import { type Chance, chanceOf } from "../../src/traffic/chance.js";
import { hold } from "../../src/traffic/one-lock.js";
import { firstContact, palisadeLock, RecordedLock } from "../../src/traffic/recorded-lock.js";

const LOCKERS = 4;
const LASTS_MS = 1_200;
/** It goes on until there are so many leases to judge. */
const ENOUGH_LEASES = 25;
const times = { ttlMs: 250, maxTtlMs: 300, nodeTimeoutMs: 50, connectTimeoutMs: 10_000 };

interface Story {
  readonly leases: readonly LeaseRecord[];
  readonly pauses: readonly Pause[];
  readonly leftBehind: readonly string[];
}

/** Acquires, holds (briefly, or until it is told of the end) and releases, again and again. */
async function contend(lock: RecordedLock, chance: Chance, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    const plan = chance.happens(0.15)
      ? ({ how: "until told", ttlMs: 100, holdMs: 60_000 } as const)
      : ({ how: "briefly", ttlMs: 250, holdMs: chance.between(0, 3) } as const);
    const lease = await lock.acquire("r", { ttlMs: plan.ttlMs, waitMs: 1_000 }).catch(nameRefusal);
    if (lease !== undefined) await hold(lease, plan, { pause: sleep });
  }
}

interface Breaking {
  readonly ways: readonly FleetWay[];
  readonly chance: Chance;
  readonly over: AbortSignal;
}

/** One fault after another. A node that lost its memory is readmitted before the next one does. */
async function breakThings({ nodes }: RedisFleet, { ways, chance, over }: Breaking): Promise<void> {
  let wiped: Promise<unknown> | undefined;
  while (!over.aborted) {
    const node = chance.one(nodes);
    const lastsMs = chance.between(10, 130);
    const fault = chance.one(["wipe", "kill", "pause", "way", "way", "late"] as const);
    if (fault === "wipe" && wiped === undefined) {
      await node.restart({ forget: true });
      wiped = readmitted(node, over).finally(() => {
        wiped = undefined;
      });
    } else if (fault === "kill" && wiped === undefined) {
      await node.kill();
      await sleep(lastsMs);
      await node.restart();
    } else if (fault === "pause") {
      await node.pause();
      await sleep(lastsMs);
      await node.resume();
    } else {
      const links = fault === "late" ? ways.map(({ proxies }) => proxies[nodes.indexOf(node)]) : chance.one(ways).proxies;
      for (const link of links) await (fault === "late" ? link?.holdRequests() : link?.partition());
      await sleep(lastsMs);
      await Promise.all(links.map((link) => link?.heal()));
    }
  }
  await wiped;
}

async function play(fleet: RedisFleet, seed: string): Promise<Story> {
  const file = join(scratchFolder("random-faults"), "journal");
  const journal = new Journal(file);
  const over = new AbortController();
  const startedAt = performance.now();
  let leases = 0;
  const write: Journal["write"] = (line) => {
    journal.write(line);
    if (line.e === "lease" && ++leases >= ENOUGH_LEASES && performance.now() - startedAt > LASTS_MS) over.abort();
  };
  const ways = await Promise.all(Array.from({ length: LOCKERS }, () => fleet.anotherWay()));
  const locks = ways.map(({ urls }, i) => new RecordedLock(palisadeLock(urls, { ...times, label: `${i}` }), { write }));
  try {
    await Promise.all(locks.map(firstContact));
    journal.recordPauses(0);
    const contending = locks.map((lock, i) => contend(lock, chanceOf(seed, `${i}`), over.signal));
    const breaking = breakThings(fleet, { ways, chance: chanceOf(seed, "faults"), over: over.signal });
    await Promise.all([breaking, ...contending]);
  } finally {
    over.abort(); // If it failed: none goes on.
    await Promise.all(locks.map((lock) => lock.close()));
    journal.close();
  }
  const whole = { author: "0", client: 0, lines: linesOf(readFileSync(file, "utf8")) };
  return { leases: leasesOf(whole), pauses: pausesOf(whole), leftBehind: await leftBehind(fleet) };
}

/** When what was under way has arrived, and what can run out has. */
async function leftBehind({ nodes }: RedisFleet): Promise<readonly string[]> {
  for (const givenUpAt = performance.now() + 10_000; ; await sleep(10)) {
    const keys = await lockKeys(nodes);
    if (keys.length === 0 || performance.now() > givenUpAt) return keys;
  }
}

// A busy machine takes its time for so many leases.
describe("under random faults", { timeout: 120_000 }, () => {
  const seed = process.env.PALISADE_SEED ?? String(Date.now() % 1_000_000);
  const repeat = `repeat with: PALISADE_SEED=${seed} npx vitest run random-faults`;

  let story: Promise<Story> | undefined;
  // Played once, by the test that comes first, and judged by each.
  const played = (fleet: StartFleet): Promise<Story> => (story ??= fleet().then((running) => play(running, seed)));

  test("T1 an acquisition that begins after another was granted has the higher token", async ({ fleet }) => {
    const { leases } = await played(fleet);
    expect(leases.length, repeat).toBeGreaterThanOrEqual(ENOUGH_LEASES);
    expect(tokensAgainstTime(leases), repeat).toEqual([]);
  });

  test("T2 no token is given twice", async ({ fleet }) => {
    expect(repeatedTokens((await played(fleet)).leases), repeat).toEqual([]);
  });

  test("L1 a holder that stays to the end is told of it in time", async ({ fleet }) => {
    const { leases, pauses } = await played(fleet);
    expect(toldTooLate(leases, pauses), repeat).toEqual([]);
  });

  test("L2 no two leases are valid at one time, each by its own deadline, and no lock is left behind", async ({ fleet }) => {
    const { leases, leftBehind: keys } = await played(fleet);
    expect(overlaps(leases), repeat).toEqual([]);
    expect(keys, repeat).toEqual([]);
  });
});

// These are the answers that a broken fleet gives. The rest is a mistake of this test.
function nameRefusal(error: unknown): undefined {
  if (!(error instanceof LockError && error.code !== "LOCK_ABORTED")) throw error;
}
