// What every part of the control flow is given: the nodes that vote, the policy, the clock, and the bookkeeping of one locker. Decides nothing.

import type { Policy } from "../options/policy.js";
import type { Clock } from "../platform/clock.js";
import type { Alarms } from "../platform/deadline-heap.js";
import type { Work } from "../platform/in-flight.js";
import type { LockNode } from "../protocol/node.js";
import type { Turnstile } from "../waiting/local-queue.js";
import type { Dormitory } from "../waiting/wait-budget.js";
import type { Courtesy } from "../waiting/yield-after-release.js";
import type { Lost } from "./acquire.js";

export interface Core {
  readonly nodes: readonly LockNode[];
  readonly policy: Policy;
  readonly clock: Clock;
  /** Throws RangeError if the fleet is known to allow only shorter leases. */
  checkFleetTtl(ttlMs: number): void;
  readonly alarms: Alarms;
  readonly work: Work;
  readonly courtesy: Courtesy;
  readonly turnstile: Turnstile<Lost>;
  readonly dormitory: Dormitory;
}
