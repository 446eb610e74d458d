// The public API of @palisade/lock: createLocker, and the types and errors of what it returns.
import { QuorumLocker } from "./locker.js";
import { type LockerOptions, readPolicy } from "./options/policy.js";
import { systemClock } from "./platform/clock.js";
import { channels } from "./protocol/events.js";
import type { Locker } from "./protocol/locker.js";
import { openFleet } from "./redis/open-fleet.js";

export type { LockerOptions, LockerTuning, RetryOptions } from "./options/policy.js";
export {
  type Ballot,
  type EpochMoved,
  type ExtendBallot,
  type GrantBallot,
  type Granted,
  type Held,
  type InspectBallot,
  type LeaseLostReason,
  LockError,
  type LockErrorCode,
  type LockErrorDetails,
  type LossReason,
  type Quarantined,
  type RaiseBallot,
  type ReleaseBallot,
  type SealBallot,
  type Unreachable,
} from "./protocol/ballot.js";
export {
  type AdmissionWay,
  type AttemptEvent,
  type CampaignEvent,
  channelNames,
  type DangerEvent,
  type EndEvent,
  type ForceReleaseEvent,
  type LossEvent,
  type NodeEvent,
  type RenewalEvent,
  type RoundEvent,
  type WaitEvent,
} from "./protocol/events.js";
export type {
  ChangeWaiting,
  Finding,
  Fleet,
  FleetMembers,
  FleetState,
  ForcedRelease,
  ForceReleaseOptions,
  HeldResource,
  HeldResources,
  Inspection,
  ListHeldOptions,
  MemberChange,
  NodeInspection,
  NodeReport,
  ReconfigureOptions,
} from "./protocol/fleet.js";
export type {
  AcquireOptions,
  Attempted,
  Campaign,
  CampaignOptions,
  Leader,
  Lease,
  Locker,
  Release,
  Renewal,
  Resources,
  Term,
  TermRoutine,
  TryAcquireOptions,
  UsingOptions,
} from "./protocol/locker.js";
export type { NodeSource } from "./protocol/node.js";
export { compareTokens, formatToken, isToken, MAX_TOKEN, parseToken } from "./protocol/token.js";

/**
 * A locker over N independent Redis masters. Begins to connect at once; nothing needs to be awaited
 * before the first call. Throws TypeError or RangeError for invalid options, before any I/O.
 *
 * @example
 * const locker = createLocker({ nodes: ["redis://a:6379", "redis://b:6379", "redis://c:6379"] });
 */
export function createLocker(options: LockerOptions): Locker {
  const policy = readPolicy(options);
  const clock = systemClock();
  const fleet = openFleet({
    ...policy,
    clock,
    onEvent: (event) => {
      if (channels.node.hasSubscribers) channels.node.publish(event);
    },
  });
  return new QuorumLocker(fleet, policy, clock);
}
