// Judges the leases of one resource, in O(n log n). Pure: knows neither the lock nor the scenario, only what was promised about what they leave behind.
import type { Span, Stall, Tenure, Violation } from "../history/lease-record.js";

/** A running holder may be told so much later than its lease ends: timers have milliseconds, and a process shares the machine with others. */
export const L1_TOLERANCE_MS = 50;

/** T2: no token twice. */
export function repeatedTokens(tenures: readonly Tenure[]): Violation[] {
  const byToken = [...tenures].sort((a, b) => a.token - b.token);
  return byToken.flatMap((tenure, i): Violation[] => {
    const before = byToken[i - 1];
    if (before?.token !== tenure.token) return [];
    return [{ promise: "T2", at: tenure.grantedAt, what: `one token for ${told(before)} and ${told(tenure)}` }];
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
      violations.push({ promise: "T1", at: later.grantedAt, what: `${told(later)} began after ${told(highest)} was granted` });
  }
  return violations;
}

/**
 * L2: no two are valid at one time, each by its own deadline: a holder that was stopped counts as one until its deadline. `leaps` are the times in which a node's clock
 * was set forward: a lease that was there then, or on its way to its holder, is not protected against others.
 */
export function overlaps(tenures: readonly Tenure[], leaps: readonly Span[] = []): Violation[] {
  const byGrant = tenures.filter((tenure) => endOf(tenure) > tenure.grantedAt).sort((a, b) => a.grantedAt - b.grantedAt); // Else it had ended before the holder had it in hand.
  const violations: Violation[] = [];
  let valid: Tenure[] = [];
  for (const tenure of byGrant) {
    valid = valid.filter((earlier) => endOf(earlier) > tenure.grantedAt);
    // The keys of either may have run out early, whichever was told of its lease first.
    const excused = ({ beganAt }: Tenure): boolean =>
      leaps.some(({ fromAt, untilAt }) => untilAt >= Math.min(beganAt, tenure.beganAt) && fromAt <= tenure.grantedAt);
    const other = valid.filter((earlier) => !excused(earlier)).sort((a, b) => endOf(b) - endOf(a))[0];
    if (other !== undefined) {
      const togetherMs = Math.min(endOf(other), endOf(tenure)) - tenure.grantedAt;
      const what = `${told(other)} and ${told(tenure)} were valid together for ${togetherMs.toFixed(3)} ms`;
      violations.push({ promise: "L2", at: tenure.grantedAt, what });
    }
    valid.push(tenure);
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
    return [
      { promise: "L1", at: tenure.validUntilAt, what: `${told(tenure)} ran for ${ranMs.toFixed(1)} ms after its end before it knew` },
    ];
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
