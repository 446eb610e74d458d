// Every promise, held against the history of a run.
import type { History } from "../history/history.js";
import { type CounterSample, groupedBy, type Violation } from "../history/records.js";
import { unbelievableAnswers } from "./answers.js";
import { brokenStreams } from "./changes.js";
import { brokenFences } from "./fence.js";
import { acceptedIntruders } from "./intruders.js";
import { overlaps, repeatedTokens, tokensAgainstTime, toldTooLate } from "./leases.js";
import { unlinearizable } from "./linearizability.js";
import { storedWrites } from "./stored-writes.js";
import { lostUpdates } from "./updates.js";

export function judge(history: History): Violation[] {
  const resources = storedWrites(history);
  return [
    ...brokenLeases(history),
    ...brokenFences(resources, history.leases),
    ...unbelievableAnswers(resources),
    ...lostUpdates(resources, history.finals),
    ...unlinearizable(resources),
    ...acceptedIntruders(history),
    ...brokenStreams(history),
    ...fallenCounters(history.counters),
    ...history.leftBehind.map((key): Violation => ({ promise: "end", what: `left behind: ${key}` })),
  ];
}

export function brokenLeases({ leases, pauses, clockJumps }: Pick<History, "leases" | "pauses" | "clockJumps">): Violation[] {
  return [...groupedBy(leases, ({ resource }) => resource)].flatMap(([resource, own]) =>
    [...repeatedTokens(own), ...tokensAgainstTime(own), ...overlaps(own, clockJumps), ...toldTooLate(own, pauses)].map(
      (violation): Violation => ({ ...violation, resource, what: `${resource}: ${violation.what}` }),
    ),
  );
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
