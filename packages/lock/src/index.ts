// The public API of @palisade/lock: named exports, no logic.

export { createLocker } from "./open-locker.js";
export { nodesOrFleets } from "./options/fleets.js";
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
export type { Campaign, CampaignOptions, Leader, Term, TermRoutine } from "./protocol/campaign.js";
export type { ChangeLimits, ChangeWaiting } from "./protocol/change-limits.js";
export { type LeaseLostReason, LockError, type LockErrorCode, type LockErrorDetails, type LossReason } from "./protocol/errors.js";
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
export type { Finding, FleetMembers, FleetState, MemberChange, NodeReport, ReconfigureOptions } from "./protocol/fleet.js";
export type { FleetInspection, FleetsChange, FleetsState } from "./protocol/fleets.js";
export type { ForcedRelease, HeldResource, HeldResources, Inspection, ListHeldOptions, NodeInspection } from "./protocol/inspection.js";
export type { Lease, Release, Renewal } from "./protocol/lease.js";
export type { AcquireOptions, Attempted, KeepOptions, Locker, Resources, TryAcquireOptions, UsingOptions } from "./protocol/locker.js";
export type { NodeSource } from "./protocol/node-source.js";
export { compareTokens, formatToken, isToken, MAX_TOKEN, parseToken } from "./protocol/token.js";
