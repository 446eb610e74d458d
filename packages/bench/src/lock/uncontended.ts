// How long one acquire and release takes on a free lock, and how many are done per second when many
// are under way: Palisade, the floor and the peers in turns on the same servers, so that the noise
// of the machine falls on all alike.
import { fixed, heading, median, progress, progressEnded, quantile, table, whole } from "../report.js";
import type { Contestant } from "./contestant.js";

const ROUNDS = 15;

export interface Scores {
  readonly latencies: number[];
  readonly ratesByRound: number[];
  readonly p50ByRound: number[];
}

export interface Load {
  readonly atOnce: number;
  /** An acquire and its release. */
  readonly pairsPerRound: number;
}

/** One round of one contestant: so many callers, each with a resource of its own. */
async function measureRound(contestant: Contestant, { atOnce, pairsPerRound }: Load): Promise<number[]> {
  const latencies: number[] = [];
  let left = pairsPerRound;
  const caller = async (resource: string): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const startedAt = performance.now();
      await contestant.acquireAndRelease(resource);
      latencies.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, (_, index) => caller(`bench/${contestant.name}/${index}`)));
  return latencies;
}

export async function compare(contestants: readonly Contestant[], load: Load): Promise<Map<Contestant, Scores>> {
  const scores = new Map<Contestant, Scores>();
  for (const contestant of contestants) {
    scores.set(contestant, { latencies: [], ratesByRound: [], p50ByRound: [] });
    await measureRound(contestant, load); // Not counted: code is compiled, connections and scripts are loaded.
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    progress(`round ${round + 1} of ${ROUNDS}, ${load.atOnce} at once`);
    for (let place = 0; place < contestants.length; place += 1) {
      const contestant = contestants[(place + round) % contestants.length];
      const score = contestant && scores.get(contestant);
      if (contestant === undefined || score === undefined) continue;
      const startedAt = performance.now();
      const latencies = await measureRound(contestant, load);
      score.ratesByRound.push(latencies.length / ((performance.now() - startedAt) / 1000));
      score.p50ByRound.push(median(latencies));
      score.latencies.push(...latencies);
    }
  }
  progressEnded();
  return scores;
}

/** The median over the rounds of one contestant's figure divided by another's in the same round. */
export function ratio(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, round) => value / (to[round] ?? Number.NaN)));
}

export async function uncontended(contestants: readonly Contestant[]): Promise<void> {
  heading(
    "One at a time",
    `acquire + release, five masters on loopback, ${ROUNDS} rounds in turns; × floor: median over the rounds of p50 / floor's p50`,
  );
  const scores = await compare(contestants, { atOnce: 1, pairsPerRound: 400 });
  const floor = [...scores.values()][0];
  const rows = [...scores].map(([{ name, tokens }, { latencies, ratesByRound, p50ByRound }]) => [
    name,
    tokens,
    fixed(median(latencies), 3),
    fixed(quantile(latencies, 0.99), 3),
    whole(median(ratesByRound)),
    fixed(ratio(p50ByRound, floor?.p50ByRound ?? []), 2),
  ]);
  const columns = [{ title: "", align: "left" as const }, { title: "token" }, { title: "p50 ms" }, { title: "p99 ms" }, { title: "per s" }];
  console.log(table([...columns, { title: "× floor" }], rows));
}

export async function atOnce(contestants: readonly Contestant[], callers: number): Promise<void> {
  heading(
    `${callers} at once`,
    `${callers} callers in one process, each with its own resource; × best peer: median over the rounds of the rate / the best peer's`,
  );
  const scores = await compare(contestants, { atOnce: callers, pairsPerRound: callers * 12 });
  const isPeer = ([{ name }]: [Contestant, Scores]): boolean => !name.startsWith("floor") && !name.startsWith("@palisade");
  const best = [...scores].filter(isPeer).sort(([, a], [, b]) => median(b.ratesByRound) - median(a.ratesByRound))[0]?.[1];
  const rows = [...scores].map(([{ name }, { latencies, ratesByRound }]) => [
    name,
    whole(median(ratesByRound)),
    fixed(median(latencies), 2),
    fixed(quantile(latencies, 0.99), 2),
    fixed(ratio(ratesByRound, best?.ratesByRound ?? []), 2),
  ]);
  const columns = [{ title: "", align: "left" as const }, { title: "per s" }, { title: "p50 ms" }, { title: "p99 ms" }];
  console.log(table([...columns, { title: "× best peer" }], rows));
}
