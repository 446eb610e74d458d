// The public API of @palisade/lock: named exports, no logic.

export { createLocker } from "./create-locker.js";
export type { Inspection } from "./lease/inspect.js";
export type { ForcedRelease } from "./lease/raise.js";
export type { AcquireOptions, KeepOptions, TryAcquireOptions, UsingOptions } from "./options/lease-request.js";
export type { LockerOptions, RetryOptions } from "./options/policy.js";
export type {
  Ballot,
  EpochMoved,
  ExtendBallot,
  GrantBallot,
  Granted,
  Held,
  InspectBallot,
  Quarantined,
  RaiseBallot,
  ReleaseBallot,
  SealBallot,
  Unreachable,
} from "./protocol/ballot.js";
export { type LeaseLostReason, LockError, type LockErrorCode, type LockErrorDetails, type LossReason } from "./protocol/errors.js";
export {
  type AttemptEvent,
  channelNames,
  type DangerEvent,
  type ForceReleaseEvent,
  type LossEvent,
  type RenewalEvent,
  type RoundEvent,
} from "./protocol/events.js";
export type { Lease, Release, Renewal } from "./protocol/lease.js";
export type { Attempted, Locker, Resources } from "./protocol/locker.js";
export type { NodeEvent } from "./protocol/node-events.js";
export { compareTokens, formatToken, isToken, MAX_TOKEN, parseToken } from "./protocol/token.js";
export type { Finding, FleetState, NodeSource } from "./redis/open-nodes.js";
