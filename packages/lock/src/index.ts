// The public API of @palisade/lock: named exports, no logic.
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
} from "./ballot.js";
export { createLocker } from "./create-locker.js";
export { type LeaseLostReason, LockError, type LockErrorCode, type LockErrorDetails, type LossReason } from "./errors.js";
export type { Lease, Release, Renewal } from "./lease.js";
export type { Attempted, Locker, Resources } from "./locker-contract.js";
export type { NodeEvent } from "./node/node-events.js";
export type { Finding, FleetState, NodeSource } from "./node/open-nodes.js";
export type { LockerOptions, RetryOptions } from "./policy.js";
export type { ForcedRelease } from "./raise.js";
export type { AcquireOptions, KeepOptions, TryAcquireOptions, UsingOptions } from "./request.js";
export type { Inspection } from "./survey.js";
export {
  type AttemptEvent,
  channelNames,
  type DangerEvent,
  type ForceReleaseEvent,
  type LossEvent,
  type RenewalEvent,
  type RoundEvent,
} from "./telemetry.js";
export { compareTokens, formatToken, isToken, MAX_TOKEN, parseToken } from "./token.js";
