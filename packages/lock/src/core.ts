// What every part of the control flow is given: the nodes that vote, the policy, the clock, and the bookkeeping of one locker. Decides nothing.
import type { Alarms } from "./alarms.js";
import type { Lost } from "./attempt.js";
import type { Clock } from "./clock.js";
import type { Courtesy } from "./courtesy.js";
import type { LockNode } from "./node/lock-node.js";
import type { Dormitory } from "./patience.js";
import type { Policy } from "./policy.js";
import type { Turnstile } from "./turnstile.js";
import type { Work } from "./work.js";

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
