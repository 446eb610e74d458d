// What every verb of the algorithm is given: the nodes that vote, the policy, the clock, and what
// one locker keeps track of.
import type { Policy } from "../options/policy.js";
import type { Clock } from "../platform/clock.js";
import type { DeadlineHeap } from "../platform/deadline-heap.js";
import type { InFlight } from "../platform/in-flight.js";
import type { ReleaseBallot } from "../protocol/ballot.js";
import type { LockError } from "../protocol/errors.js";
import type { LockNode } from "../protocol/node.js";
import type { LeastToken } from "../protocol/token.js";
import type { Ballots } from "../quorum/round.js";

export interface LeaseContext {
  /**
   * The members of the present generation, and the policy with their number. Both are replaced when
   * the members change: a verb reads them once, before its first round.
   */
  readonly nodes: readonly LockNode[];
  readonly policy: Policy;
  /** The name of this fleet, where it is one of several. */
  readonly fleet?: string | undefined;
  readonly clock: Clock;
  readonly deadlines: DeadlineHeap;
  readonly inFlight: InFlight;
  readonly leastToken: LeastToken;
  /** The longest lease the fleet allows now; undefined while it is not known. */
  readonly fleetMaxTtlMs: number | undefined;
  /**
   * Why this fleet does not serve the resources; undefined if it does, or where it is the only one.
   */
  readonly elsewhere?: ((resources: readonly string[]) => LockError | undefined) | undefined;
  /** Throws RangeError if the fleet is known to allow only shorter leases. */
  checkFleetTtl(ttlMs: number): void;
  /** Does another caller of this locker want, or wait for, the very same resources? */
  readonly isWanted?: ((resources: readonly string[]) => boolean) | undefined;
  /** Called when a held lease was given back, with what the nodes answered until then. */
  onReleased(resources: readonly string[], ballots: Ballots<ReleaseBallot>): void;
}
