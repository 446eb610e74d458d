// What every verb of the algorithm is given: the nodes that vote, the policy, the clock, and the bookkeeping of one locker.
import type { Policy } from "../options/policy.js";
import type { Clock } from "../platform/clock.js";
import type { DeadlineHeap } from "../platform/deadline-heap.js";
import type { Work } from "../platform/in-flight.js";
import type { ReleaseBallot } from "../protocol/ballot.js";
import type { LockNode } from "../protocol/node.js";
import type { Ballots } from "../quorum/tally.js";

export interface LeaseContext {
  readonly nodes: readonly LockNode[];
  readonly policy: Policy;
  readonly clock: Clock;
  /** Throws RangeError if the fleet is known to allow only shorter leases. */
  checkFleetTtl(ttlMs: number): void;
  readonly deadlines: DeadlineHeap;
  readonly work: Work;
  /** Called when a held lease was given back, with what the nodes answered until then. */
  onReleased(resources: readonly string[], ballots: Ballots<ReleaseBallot>): void;
}
