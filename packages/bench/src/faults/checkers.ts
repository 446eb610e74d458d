// Judges a recorded history, in O(n log n). Pure: knows neither the lock nor the scenario, only what was promised about what they leave behind.
import type { CounterSample, History, Stall, Tenure } from "./history.js";

export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "counters" | "end";
  readonly what: string;
}

/** A running holder may be told so much later than its lease ends: timers have milliseconds, and a process shares the machine with others. */
export const L1_TOLERANCE_MS = 50;

/** Everything that is wrong with it; empty if nothing is. */
export function judge(history: History): Violation[] {
  return [
    ...repeatedTokens(history.tenures),
    ...tokensAgainstTime(history.tenures),
    ...overlaps(history.tenures),
    ...toldTooLate(history.tenures, history.stalls),
    ...fallenCounters(history.samples),
    ...history.leftBehind.map((key): Violation => ({ promise: "end", what: `left behind: ${key}` })),
  ];
}

/** T2: no token twice. */
export function repeatedTokens(tenures: readonly Tenure[]): Violation[] {
  const byToken = [...tenures].sort((a, b) => a.token - b.token);
  return byToken.flatMap((tenure, i): Violation[] => {
    const before = byToken[i - 1];
    return before?.token === tenure.token ? [{ promise: "T2", what: `one token for ${told(before)} and ${told(tenure)}` }] : [];
  });
}

/** T1: what began after another was granted has a higher token. */
export function tokensAgainstTime(tenures: readonly Tenure[]): Violation[] {
  const byGrant = [...tenures].sort((a, b) => a.grantedAt - b.grantedAt);
  const byBeginning = [...tenures].sort((a, b) => a.beganAt - b.beganAt);
  const violations: Violation[] = [];
  let highest: Tenure | undefined;
  let granted = 0;
  for (const later of byBeginning) {
    for (let earlier = byGrant[granted]; earlier !== undefined && earlier.grantedAt < later.beganAt; earlier = byGrant[++granted]) {
      if (highest === undefined || earlier.token > highest.token) highest = earlier;
    }
    if (highest !== undefined && later.token <= highest.token)
      violations.push({ promise: "T1", what: `${told(later)} began after ${told(highest)} was granted` });
  }
  return violations;
}

/** L2: no two are valid at one time, each by its own deadline: a holder that was stopped counts as one until its deadline. */
export function overlaps(tenures: readonly Tenure[]): Violation[] {
  const byGrant = [...tenures].sort((a, b) => a.grantedAt - b.grantedAt);
  const violations: Violation[] = [];
  let longest: Tenure | undefined;
  for (const tenure of byGrant) {
    if (endOf(tenure) <= tenure.grantedAt) continue; // It had ended before the holder had it in hand.
    if (longest !== undefined && tenure.grantedAt < endOf(longest)) {
      const togetherMs = Math.min(endOf(longest), endOf(tenure)) - tenure.grantedAt;
      violations.push({ promise: "L2", what: `${told(longest)} and ${told(tenure)} were valid together for ${togetherMs.toFixed(3)} ms` });
    }
    if (longest === undefined || endOf(tenure) > endOf(longest)) longest = tenure;
  }
  return violations;
}

/** L1: while it runs, a holder knows of the end no later than it comes, but for the tolerance. */
export function toldTooLate(tenures: readonly Tenure[], stalls: readonly Stall[]): Violation[] {
  const stallsOf = new Map<number, Stall[]>();
  for (const stall of stalls) {
    const known = stallsOf.get(stall.client);
    if (known === undefined) stallsOf.set(stall.client, [stall]);
    else known.push(stall);
  }
  return tenures.flatMap((tenure): Violation[] => {
    const knewAt = Math.min(tenure.toldAt ?? Number.POSITIVE_INFINITY, tenure.releasedAt ?? Number.POSITIVE_INFINITY);
    const lateMs = knewAt - tenure.validUntilAt;
    if (lateMs <= L1_TOLERANCE_MS) return [];
    const ranMs = lateMs - stalledMs(stallsOf.get(tenure.client) ?? [], tenure.validUntilAt, knewAt);
    if (ranMs <= L1_TOLERANCE_MS) return [];
    return [{ promise: "L1", what: `${told(tenure)} ran for ${ranMs.toFixed(1)} ms after its end before it knew` }];
  });
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

function endOf({ validUntilAt, releasedAt, toldAt }: Tenure): number {
  return Math.min(validUntilAt, releasedAt ?? validUntilAt, toldAt ?? validUntilAt);
}

function stalledMs(stalls: readonly Stall[], fromAt: number, untilAt: number): number {
  return stalls.reduce((sum, stall) => sum + Math.max(0, Math.min(stall.untilAt, untilAt) - Math.max(stall.fromAt, fromAt)), 0);
}

function told(tenure: Tenure): string {
  const times = [tenure.beganAt, tenure.grantedAt, endOf(tenure)].map((at) => at.toFixed(3)).join(", ");
  return `client ${tenure.client}'s token ${tenure.token} (began, granted, ended: ${times})`;
}
