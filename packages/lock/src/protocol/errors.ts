// What the lock throws when a lease cannot be had or kept, and when its own code breaks a promise.
// Misuse is TypeError or RangeError, thrown where options are read.
import type { Ballot } from "./ballot.js";

/**
 * Why nothing was acquired. `held`: another owner has it. `no_quorum`: too few nodes could be
 * asked. `too_slow`: it was granted, but too little of the lease was left, so it was given back; or
 * this process had so many calls in flight that the nodes were not asked in time.
 */
export type LossReason = "held" | "no_quorum" | "too_slow";

/**
 * Why a lease is no longer held. `expired`: its time ran out. `taken`: too many nodes have another
 * owner, or none, before its time was over. `unreachable`: its time ran out while too few nodes
 * could be asked to renew it. `quarantined`: the same, and some of them were up but not admitted.
 * `released`: by its holder. `handed_over`: its holder serialized it. `closed`: the locker was
 * closed.
 */
export type LeaseLostReason = "expired" | "taken" | "unreachable" | "quarantined" | "released" | "handed_over" | "closed";

/** Stable names for what happened. */
export type LockErrorCode = "LOCK_HELD" | "LOCK_NO_QUORUM" | "LOCK_TOO_SLOW" | "LOCK_ABORTED" | "LEASE_LOST" | "FLEET_MISMATCH";

/** What a LockError carries besides its code and message. */
export interface LockErrorDetails {
  /** All resources of the call. */
  readonly resources?: readonly string[];
  /** What each node answered. */
  readonly ballots?: readonly Ballot[];
  /** With `LEASE_LOST`: why. */
  readonly reason?: LeaseLostReason;
  /** With `LOCK_HELD`: when to try again at the earliest, in milliseconds. */
  readonly retryAfterMs?: number;
  /** The error behind this one. */
  readonly cause?: unknown;
}

/**
 * A lease could not be acquired or kept. `code` is for programs, `message` for people: what
 * happened, with numbers, then what it means.
 */
export class LockError extends Error {
  override readonly name = "LockError";
  /** Which of the failures it is: for programs. */
  readonly code: LockErrorCode;
  /** All resources of the call. */
  readonly resources: readonly string[];
  /** What each node answered, as far as it was asked. */
  readonly ballots: readonly Ballot[];
  /** With `LEASE_LOST`: why. */
  readonly reason: LeaseLostReason | undefined;
  /**
   * With `LOCK_HELD`: the earliest moment from now, in milliseconds, at which the present holders
   * could run out.
   */
  readonly retryAfterMs: number | undefined;

  constructor(code: LockErrorCode, message: string, details: LockErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.resources = details.resources ?? [];
    this.ballots = details.ballots ?? [];
    this.reason = details.reason;
    this.retryAfterMs = details.retryAfterMs;
  }

  /** The resource, or the first of several. */
  get resource(): string | undefined {
    return this.resources[0];
  }
}

/** For code that finds one of the lock's own promises broken; also thrown in production. */
export function brokenPromise(promise: string): Error {
  return new Error(`broken promise (please report): ${promise}`);
}
