// The public API of @palisade/lock: named exports, no logic.

export { createLocker } from "./open-locker.js";
export type { LockerOptions, LockerTuning, RetryOptions } from "./options/policy.js";
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
export { type LeaseLostReason, LockError, type LockErrorCode, type LockErrorDetails, type LossReason } from "./protocol/ballot.js";
export type { NodeEvent } from "./protocol/events.js";
export {
  type AdmissionWay,
  type AttemptEvent,
  channelNames,
  type DangerEvent,
  type EndEvent,
  type ForceReleaseEvent,
  type LossEvent,
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
