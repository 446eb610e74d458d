// How soon a released lock is held by another process, by the monotonic clock that both read: a
// single waiter that has waited for a while, and crowds in which everybody wants the lock again.
import { setTimeout as sleep } from "node:timers/promises";
import type { Contestant, Effort, Round } from "../measure/comparison.js";
import { nowUs } from "../measure/cpu.js";
import type { Context, Part } from "../measure/part.js";
import { type Column, sum } from "../measure/results.js";
import type { Turn } from "./client.js";
import { countCommands, LockBench, type LockProcess, withBefore } from "./lock-bench.js";

/** Long enough for the other process to be refused and to wait. */
const PARKED_MS = 40;
/** What a holder of a contended lock does with it. */
export const HOLD_MS = 2;
/** A caller of a crowd gives up after a whole round, but not sooner than this. */
const LEAST_WAIT_MS = 3_000;
/** All processes of a crowd begin at the same moment. */
export const HEAD_START_US = 20_000;
const COUNTED_SECONDS = 3;
/** For each process: so that in the shortest round everybody could have had it several times. */
const LEAST_SECONDS_EACH = 0.025;

const crowds: Readonly<Record<number, { readonly effort: Effort; readonly entrants: readonly string[] }>> = {
  2: { effort: { rounds: 5, seconds: 1 }, entrants: ["palisade", "redlock5", "redlock5!", "semaphore", "semaphore+"] },
  4: { effort: { rounds: 5, seconds: 1 }, entrants: ["palisade", "redlock5", "redlock5!", "semaphore", "semaphore+"] },
  16: { effort: { rounds: 3, seconds: 2 }, entrants: ["palisade", "redlock5", "redlock5!", "semaphore"] },
};
const headlineEntrants = new Set(["palisade", "semaphore"]);

export const handoverParts: readonly Part[] = [
  {
    name: "handover",
    what: "from release() to the next holder in another process, which has waited for a while",
    from: "usual",
    run: parked,
  },
  ...[2, 4, 16].map((size) => ({
    name: `handover-${size}`,
    what: `${size} processes that want one lock over and over: hand-over, longest wait, commands`,
    from: size === 16 ? ("quick" as const) : ("usual" as const),
    run: (context: Context) => crowd(size, context),
  })),
];

const columns: readonly Column[] = [
  { key: "longestUs", title: "longest wait µs", digits: 0 },
  { key: "fairShares", title: "longest ÷ fair share", digits: 1 },
  { key: "commands", title: "commands per hand-over and node", digits: 1 },
];

async function parked(context: Context): Promise<void> {
  context.progress.begin("Handed over to another process");
  await using bench = await LockBench.start(context);
  const pair = bench.processes(2) as [LockProcess, LockProcess];
  const contestants: Contestant[] = [];
  for (const key of withBefore(["palisade", "redlock5", "sesamecare", "universal", "semaphore"], context)) {
    await bench.open(pair, key);
    contestants.push(
      counting(
        bench,
        bench.contestant(key, pair, (seconds) => parkedRound(key, pair, seconds)),
      ),
    );
  }
  await context.compare({
    id: "handover",
    title: "Handed over to another process",
    remark: `from the call of release to the lock in a process that has waited for ${PARKED_MS} to ${2 * PARKED_MS} ms, each library's own way of waiting; processor times with the waiting`,
    effort: context.effort({ rounds: 4, seconds: 0.8 }),
    contestants,
    compared: "p50Us",
    warmUp: "one round",
  });
}

/** The commands are counted in a round of their own. */
function counting({ fleet }: LockBench, contestant: Contestant): Contestant {
  return {
    ...contestant,
    async after() {
      const { commands, result } = await countCommands(fleet, () => contestant.round(COUNTED_SECONDS));
      const { operations, allOperations = operations } = result;
      return { commands: commands / Math.max(1, allOperations) / fleet.nodes.length };
    },
  };
}

let handovers = 0;

async function parkedRound(key: string, [holder, waiter]: readonly [LockProcess, LockProcess], seconds: number): Promise<Round> {
  const latenciesUs: number[] = [];
  const startedAt = performance.now();
  while (latenciesUs.length === 0 || performance.now() - startedAt < seconds * 1_000) {
    const resources = [`handover/${key}/${handovers++}`];
    await holder.ask({ kind: "hold", key, resources });
    const acquired = waiter.ask<readonly number[]>({ kind: "await", key, resources });
    // Random, so that no library's polling falls in step with it.
    await sleep(PARKED_MS * (1 + Math.random()));
    const releasedUs = await holder.ask<number>({ kind: "release", resources });
    latenciesUs.push(((await acquired)[0] ?? Number.NaN) - releasedUs);
  }
  return { operations: latenciesUs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesUs };
}

async function crowd(size: number, context: Context): Promise<void> {
  const { effort, entrants } = crowds[size] ?? { effort: { rounds: 1, seconds: 1 }, entrants: [] };
  const title = `${size} processes want one lock`;
  context.progress.begin(title);
  await using bench = await LockBench.start(context);
  const own = bench.processes(size);
  const wanted = context.effort(effort);
  const fit = { ...wanted, seconds: Math.max(wanted.seconds, size * LEAST_SECONDS_EACH) };
  const contestants: Contestant[] = [];
  const fewer = entrants.filter((key) => context.scope !== "quick" || headlineEntrants.has(key));
  for (const key of withBefore(fewer, context)) {
    await bench.open(own, key, { waitMs: Math.max(LEAST_WAIT_MS, fit.seconds * 1_000) });
    contestants.push(
      counting(
        bench,
        bench.contestant(key, own, (seconds) => crowdRound(key, own, seconds)),
      ),
    );
  }
  await context.compare({
    id: `handover-${size}`,
    title,
    remark: `held for ${HOLD_MS} ms each time; p50 and p99 from the call of release to the next holder; a fair share is the time in which everybody has it once; waits are cut off at the end of a round`,
    effort: fit,
    contestants,
    columns,
    compared: "p50Us",
    warmUp: "one round",
  });
}

interface Contender {
  readonly process: LockProcess;
  readonly key: string;
  readonly wants: readonly (string | readonly string[])[];
}

/** The turns of each; all begin at the same moment, and want nothing more after so many seconds. */
export async function contend(contenders: readonly Contender[], seconds: number) {
  const fromUs = nowUs() + HEAD_START_US;
  const untilUs = fromUs + seconds * 1_000_000;
  const ask = { kind: "contend" as const, fromUs, untilUs, holdMs: HOLD_MS };
  const turns = await Promise.all(contenders.map(({ process, ...rest }) => process.ask<readonly Turn[]>({ ...ask, ...rest })));
  return { turns, fromUs, untilUs };
}

async function crowdRound(key: string, own: readonly LockProcess[], seconds: number): Promise<Round> {
  const wants = [`crowd/${key}/${handovers++}`];
  const {
    turns: byProcess,
    fromUs,
    untilUs,
  } = await contend(
    own.map((process) => ({ process, key, wants })),
    seconds,
  );
  const inTime = (turn: Turn): boolean => turn.isAcquired && turn.acquiredUs < untilUs;
  const turns = byProcess.flatMap((list, place) => list.filter(inTime).map((turn) => ({ ...turn, place })));
  turns.sort((a, b) => a.acquiredUs - b.acquiredUs);
  const latenciesUs = turns.flatMap((turn, i) => {
    const last = turns[i - 1];
    return last === undefined || last.place === turn.place ? [] : [turn.acquiredUs - last.releasedUs];
  });
  // Of what was not granted in time, the wait until the end counts: it was at least that.
  const waitsUs = byProcess.flatMap((list) => list.map(({ askedUs, acquiredUs }) => Math.min(acquiredUs, untilUs) - askedUs));
  const longestUs = Math.max(...waitsUs);
  const fairShareUs = ((untilUs - fromUs) / Math.max(1, turns.length)) * own.length;
  return {
    operations: turns.length,
    // At the end of the time each process still waits for a turn, which it takes.
    allOperations: sum(byProcess.map((list) => list.filter(({ isAcquired }) => isAcquired).length)),
    seconds,
    // Without any hand-over the whole time is one that did not come.
    latenciesUs: sum(latenciesUs) === 0 ? [seconds * 1_000_000] : latenciesUs,
    figures: { longestUs, fairShares: longestUs / fairShareUs },
  };
}
