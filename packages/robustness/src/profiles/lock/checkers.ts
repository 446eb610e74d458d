// Judges the recorded history of a run of the lock alone. Pure: knows neither the lock nor the scenario, only what was promised about what they leave behind.
import { overlaps, repeatedTokens, tokensAgainstTime, toldTooLate } from "../../checkers/leases.js";
import type { Violation } from "../../history/lease-record.js";
import type { CounterSample, History } from "./history.js";

/** Everything that is wrong with it; empty if nothing is. */
export function judge(history: History): Violation[] {
  return [
    ...repeatedTokens(history.tenures),
    ...tokensAgainstTime(history.tenures),
    ...overlaps(history.tenures, history.leaps),
    ...toldTooLate(history.tenures, history.stalls),
    ...fallenCounters(history.samples),
    ...history.leftBehind.map((key): Violation => ({ promise: "end", what: `left behind: ${key}` })),
  ];
}

/** What a node has counted never falls while it keeps its memory. */
export function fallenCounters(samples: readonly CounterSample[]): Violation[] {
  const last = new Map<string, CounterSample>();
  return samples.flatMap((sample): Violation[] => {
    const memory = `${sample.node}/${sample.memory}`;
    const before = last.get(memory);
    last.set(memory, sample);
    if (before === undefined || (sample.floor >= before.floor && sample.counter >= before.counter)) return [];
    const from = `floor ${before.floor}, counter ${before.counter}`;
    return [{ promise: "counters", what: `${sample.node} fell from ${from} to floor ${sample.floor}, counter ${sample.counter}` }];
  });
}
