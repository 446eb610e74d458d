// What the lock throws when the world says no, and how our own bugs stop the process from going on with a broken promise. Misuse is TypeError or RangeError,
// thrown where the options are read.
import type { Ballot } from "./ballot.js";

/**
 * Why an attempt took nothing. `held`: somebody has it. `no_quorum`: too few nodes could be asked. `too_slow`: it was taken, but too little of the lease was left, and
 * so it was given back; or this process had so much under way that it was not asked for in time.
 */
export type LossReason = "held" | "no_quorum" | "too_slow";

/**
 * Why a lease is no longer held. `expired`: its time ran out. `taken`: it was taken away before its time: too many nodes have another owner, or none. `unreachable`:
 * its time ran out while too few nodes could be asked to renew it. `quarantined`: the same, and some of them were up but not believed. `released`: by its holder.
 * `closed`: the locker was closed.
 */
export type LeaseLostReason = "expired" | "taken" | "unreachable" | "quarantined" | "released" | "closed";

/** Stable names for what happened. */
export type LockErrorCode = "LOCK_HELD" | "LOCK_NO_QUORUM" | "LOCK_TOO_SLOW" | "LOCK_ABORTED" | "LEASE_LOST" | "FLEET_MISMATCH";

/** What a LockError carries besides its code and message. */
export interface LockErrorDetails {
  readonly resources?: readonly string[];
  readonly ballots?: readonly Ballot[];
  readonly reason?: LeaseLostReason;
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

/** The world did not allow it. `code` is for programs, `message` for people: what happened, with numbers, then what it means. */
export class LockError extends Error {
  override readonly name = "LockError";
  readonly code: LockErrorCode;
  /** All resources of the question. */
  readonly resources: readonly string[];
  /** What each node answered, as far as it was asked. */
  readonly ballots: readonly Ballot[];
  /** With `LEASE_LOST`: why. */
  readonly reason: LeaseLostReason | undefined;
  /** With `LOCK_HELD`: the earliest moment from now, in milliseconds, at which the present holders could run out. */
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

const codes = { held: "LOCK_HELD", no_quorum: "LOCK_NO_QUORUM", too_slow: "LOCK_TOO_SLOW" } as const;

/** The code under which a lost attempt is thrown. */
export function codeOf(reason: LossReason): LockErrorCode {
  return codes[reason];
}

/** Stops when one of our own promises is broken; on in production. */
export function invariant(condition: boolean, promise: string): asserts condition {
  if (!condition) throw new Error(`broken promise (please report): ${promise}`);
}
