// T1, T2, L1 and L2 on the leases of each resource, in O(n log n), and the counters of the nodes.
import {
  type CounterSample,
  groupedBy,
  type History,
  highestBefore,
  type LeaseRecord,
  type Pause,
  type Span,
  type Violation,
} from "../history.js";

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

/** How long after its end a running holder may be told: timers are late on a shared machine. */
export const L1_TOLERANCE_MS = 50;

/** T2: no token twice. */
export function repeatedTokens(leases: readonly LeaseRecord[]): Violation[] {
  const byToken = [...leases].sort((a, b) => a.token - b.token);
  return byToken.flatMap((lease, i): Violation[] => {
    const before = byToken[i - 1];
    if (before?.token !== lease.token) return [];
    return [{ promise: "T2", at: lease.grantedAt, what: `one token for ${told(before)} and ${told(lease)}` }];
  });
}

/** T1: an acquire that began after a lease was granted gets a higher token. */
export function tokensAgainstTime(leases: readonly LeaseRecord[]): Violation[] {
  const byGrant = [...leases].sort((a, b) => a.grantedAt - b.grantedAt);
  const byBeginning = [...leases].sort((a, b) => a.beganAt - b.beganAt);
  const highest = highestBefore(byGrant, byBeginning, { isBefore: (a, b) => a.grantedAt < b.beganAt, height: ({ token }) => token });
  return byBeginning.flatMap((later, i): Violation[] => {
    const earlier = highest[i];
    if (earlier === undefined || later.token > earlier.token) return [];
    return [{ promise: "T1", at: later.grantedAt, what: `${told(later)} began after ${told(earlier)} was granted` }];
  });
}

/**
 * L2: no two leases are valid at one time, each by its own deadline: a stopped holder counts until
 * its deadline. `clockJumps` are the times in which a node's clock was set forward: a lease that
 * existed then, or was on its way to its holder, is not protected.
 */
export function overlaps(leases: readonly LeaseRecord[], clockJumps: readonly Span[] = []): Violation[] {
  // A lease that had ended before the holder had it in hand was never held.
  const byGrant = leases.filter((lease) => endOf(lease) > lease.grantedAt).sort((a, b) => a.grantedAt - b.grantedAt);
  const violations: Violation[] = [];
  let valid: LeaseRecord[] = [];
  for (const lease of byGrant) {
    valid = valid.filter((earlier) => endOf(earlier) > lease.grantedAt);
    // The keys of either lease may have expired early.
    const excused = ({ beganAt }: LeaseRecord): boolean =>
      clockJumps.some(({ fromAt, untilAt }) => untilAt >= Math.min(beganAt, lease.beganAt) && fromAt <= lease.grantedAt);
    const other = valid.filter((earlier) => !excused(earlier)).sort((a, b) => endOf(b) - endOf(a))[0];
    if (other !== undefined) {
      const togetherMs = Math.min(endOf(other), endOf(lease)) - lease.grantedAt;
      const what = `${told(other)} and ${told(lease)} were valid together for ${togetherMs.toFixed(3)} ms`;
      violations.push({ promise: "L2", at: lease.grantedAt, what });
    }
    valid.push(lease);
  }
  return violations;
}

/** L1: a running holder knows of the end of its lease when it comes, but for the tolerance. */
export function toldTooLate(leases: readonly LeaseRecord[], pauses: readonly Pause[]): Violation[] {
  const pausesOf = groupedBy(pauses, ({ client }) => client);
  return leases.flatMap((lease): Violation[] => {
    const knewAt = Math.min(lease.toldAt ?? Number.POSITIVE_INFINITY, lease.releasedAt ?? Number.POSITIVE_INFINITY);
    const lateMs = knewAt - lease.validUntilAt;
    if (lateMs <= L1_TOLERANCE_MS) return [];
    const ranMs = lateMs - pausedMs(pausesOf.get(lease.client) ?? [], lease.validUntilAt, knewAt);
    if (ranMs <= L1_TOLERANCE_MS) return [];
    return [{ promise: "L1", at: lease.validUntilAt, what: `${told(lease)} ran for ${ranMs.toFixed(1)} ms after its end before it knew` }];
  });
}

function endOf({ validUntilAt, releasedAt, toldAt }: LeaseRecord): number {
  return Math.min(validUntilAt, releasedAt ?? validUntilAt, toldAt ?? validUntilAt);
}

function pausedMs(pauses: readonly Pause[], fromAt: number, untilAt: number): number {
  return pauses.reduce((sum, pause) => sum + Math.max(0, Math.min(pause.untilAt, untilAt) - Math.max(pause.fromAt, fromAt)), 0);
}

function told(lease: LeaseRecord): string {
  const times = [lease.beganAt, lease.grantedAt, endOf(lease)].map((at) => at.toFixed(3)).join(", ");
  return `client ${lease.client}'s token ${lease.token} (began, granted, ended: ${times})`;
}
