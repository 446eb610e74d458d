// What every verb of the algorithm is given: the nodes that vote, the policy, the clock, and what
// one locker keeps track of. And what becomes of one acquisition: won, or lost and why.
import type { Policy } from "../options/policy.js";
import type { Clock, InFlight } from "../platform/clock.js";
import type { DeadlineHeap } from "../platform/deadline-heap.js";
import type { EpochMoved, GrantBallot, LossReason, ReleaseBallot, SealBallot } from "../protocol/ballot.js";
import type { LockNode } from "../protocol/node.js";
import type { LeastToken } from "../protocol/token.js";
import type { Wait } from "../protocol/verbs.js";
import { type Ballots, freeInMs, type QuorumRule } from "../quorum.js";

export interface LeaseContext {
  /**
   * The members of the present generation, and the policy with their number. Both are replaced when
   * the members change: a verb reads them once, before its first round.
   */
  readonly nodes: readonly LockNode[];
  readonly policy: Policy;
  readonly clock: Clock;
  readonly deadlines: DeadlineHeap;
  readonly inFlight: InFlight;
  readonly leastToken: LeastToken;
  /** The longest lease the fleet allows now; undefined while it is not known. */
  readonly fleetMaxTtlMs: number | undefined;
  /** Throws RangeError if the fleet is known to allow only shorter leases. */
  checkFleetTtl(ttlMs: number): void;
  /** Does another caller of this locker want, or wait for, the very same resources? */
  readonly isWanted?: ((resources: readonly string[]) => boolean) | undefined;
  /** Called when a held lease was given back, with what the nodes answered until then. */
  onReleased(resources: readonly string[], ballots: Ballots<ReleaseBallot>): void;
}

/** What is acquired. */
export interface Wanted {
  readonly resources: readonly string[];
  readonly ttlMs: number;
  /** The caller waits; the lock value then says from the start that others may be waiting, too. */
  readonly wait?: Wait | undefined;
}

/** A lease as the nodes granted it. */
export interface Won {
  readonly kind: "won";
  readonly resources: readonly string[];
  readonly owner: string;
  readonly token: number;
  readonly ttlMs: number;
  /** Both clocks before the first byte was sent: the lease counts from then (L2). */
  readonly startMonotonicMs: number;
  readonly startWallMs: number;
  /** The name of the ticket that won it, if one did. */
  readonly ticket: string | undefined;
  /** The nodes that were asked. */
  readonly nodes: readonly LockNode[];
  /** Filled in as further nodes answer. */
  readonly votes: readonly (GrantBallot | EpochMoved | undefined)[];
}

export interface Lost {
  readonly kind: "lost";
  readonly reason: LossReason;
  /** Lost only because epochs changed meanwhile: worth another acquisition at once. */
  readonly epochMoved: boolean;
  readonly ballots: readonly (GrantBallot | EpochMoved)[];
  readonly seals: readonly (SealBallot | EpochMoved)[];
  /** How many nodes granted it, in vain. */
  readonly grants: number;
  /** What was left of the lease, if that was too little. */
  readonly leftMs: number | undefined;
}

export type Outcome = Won | Lost;

/**
 * In how many milliseconds it can be free at the earliest, if it is held and enough nodes said for
 * how long.
 */
export function retryAfterMs({ reason, ballots }: Lost, rule: QuorumRule): number | undefined {
  return reason === "held" ? freeInMs(ballots, rule) : undefined;
}
