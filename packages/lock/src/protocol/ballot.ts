// One node's answer to one request: "could not be asked" and "said no" are different kinds, because
// only the second counts against a majority. And what the lock throws when a lease cannot be had or
// kept; misuse is TypeError or RangeError, thrown where options are read.

/**
 * A node that could not be asked, or did not answer within nodeTimeoutMs. It may still have
 * executed the request.
 */
export interface Unreachable {
  /** Which of the answers it is. */
  readonly kind: "unreachable";
  /** The name of the node: n1, n2, … in the order of `nodes`. */
  readonly node: string;
  /** Short and stable: ECONNREFUSED, TIMEOUT after 50 ms, NOAUTH, READONLY, garbage reply… */
  readonly cause: string;
  /**
   * Present where it is certain that nothing was sent: then there is nothing to give back either.
   */
  readonly unsent?: true;
}

/**
 * A node that is up but not admitted since its server started: it may have forgotten what it
 * stored. Or one that has accepted the next set of members and waits until that is in force.
 */
export interface Quarantined {
  /** Which of the answers it is. */
  readonly kind: "quarantined";
  /** The name of the node: n1, n2, … in the order of `nodes`. */
  readonly node: string;
  /** Earliest moment from now at which it can be admitted, where known. */
  readonly readyInMs?: number;
  /** Why nothing can be done for it now, where that is so. */
  readonly reason?: string;
}

/** Yes: this node granted all resources of the request. */
export interface Granted {
  /** Which of the answers it is. */
  readonly kind: "granted";
  /** The name of the node: n1, n2, … in the order of `nodes`. */
  readonly node: string;
  /** The highest token this node has now stored for the resources of the request. */
  readonly token: number;
  /** The node's epoch at the moment of the grant; see LockNode.epoch. */
  readonly epoch: string;
}

/** No: at least one of the resources has another owner on this node. */
export interface Held {
  /** Which of the answers it is. */
  readonly kind: "held";
  /** The name of the node: n1, n2, … in the order of `nodes`. */
  readonly node: string;
  /**
   * The first resource of the request that has another owner, the label of that owner, and for how
   * long at most.
   */
  readonly resource: string;
  /** The label of the other owner. */
  readonly holder: string;
  /** For how long that owner has it at most, in milliseconds. */
  readonly remainingMs: number;
  /** Present where it is free, and reserved for a moment for a process that has waited for it. */
  readonly isReserved?: true;
  /** Present where the caller waits in its queue there: in which place; 1 is the first. */
  readonly place?: number;
}

/**
 * A grant, seal or raise that must not be counted, lest a token be issued twice (T2): after the caller noted the node's
 * epoch and before this answer, another member's memory was rebuilt from this node, and the
 * rebuilding did not see the token that this answer stored. Made by the round that compares
 * epochs; never sent by a node.
 */
export interface EpochMoved {
  /** Which of the answers it is. */
  readonly kind: "epoch_moved";
  /** The name of the node: n1, n2, … in the order of `nodes`. */
  readonly node: string;
}

/** Answer to a request for a grant. */
export type GrantBallot = Granted | Held | Quarantined | Unreachable;

/**
 * `sealed`: the node still had this owner and now stores the token. `lost`: it had not, and stored
 * nothing.
 */
export type SealBallot =
  | { readonly kind: "sealed"; readonly node: string; readonly epoch: string }
  | { readonly kind: "lost"; readonly node: string }
  | Quarantined
  | Unreachable;

/** `missing`: no owner there (the key ran out or was forgotten); `taken`: another owner by now. */
export type ExtendBallot =
  | { readonly kind: "extended"; readonly node: string }
  | { readonly kind: "missing"; readonly node: string }
  | { readonly kind: "taken"; readonly node: string; readonly holder: string; readonly remainingMs: number }
  | Quarantined
  | Unreachable;

/**
 * `absent`: the owner no longer had it there, which is no mistake of the caller, or never had it,
 * since the node could not be asked for it. `listeners`: how many tickets waited there (the
 * highest over the resources), one of this process included.
 */
export type ReleaseBallot =
  | { readonly kind: "released"; readonly node: string; readonly listeners: number }
  | { readonly kind: "absent"; readonly node: string }
  | Unreachable;

/**
 * What one node knows of one resource. `token` is its counter, or its floor where the counter has
 * run out.
 */
export type InspectBallot =
  | {
      readonly kind: "seen";
      readonly node: string;
      readonly holder: string | null;
      /**
       * Equal for the same acquisition, while a label may be shared by all holders of a process. A
       * hash: nothing can be released with it.
       */
      readonly owner: string | null;
      readonly remainingMs: number | null;
      readonly token: number;
      /** How many wait for it there. */
      readonly waiting?: number;
      /** Free, and reserved for a moment for a process that has waited for it. */
      readonly isReserved?: true;
      /** The ticket that was asked for does not wait there. */
      readonly isForgotten?: true;
    }
  | Quarantined
  | Unreachable;

/**
 * Answer to raising the counter of a resource without owning it (break-glass and read repair).
 * `kept`: another has it than the one that was to be removed, and nothing was done.
 */
export type RaiseBallot =
  | {
      readonly kind: "raised";
      readonly node: string;
      readonly token: number;
      readonly epoch: string;
      readonly removed: string | null;
    }
  | { readonly kind: "kept"; readonly node: string }
  | Quarantined
  | Unreachable;

/** Any answer to any request; `kind` and the request tell which. */
export type Ballot = GrantBallot | EpochMoved | SealBallot | ExtendBallot | ReleaseBallot | InspectBallot | RaiseBallot;

/**
 * Why nothing was acquired. `held`: another owner has it. `no_quorum`: too few nodes could be
 * asked, or nodes were admitted during each of several attempts, which makes grants void.
 * `too_slow`: it was granted, but too little of the lease was left, so it was given back; or this
 * process had so many calls in flight that the nodes were not asked in time.
 */
export type LossReason = "held" | "no_quorum" | "too_slow";

/**
 * Why a lease is no longer held. `expired`: its time ran out. `taken`: too many nodes have another
 * owner, or none, before its time was over. `unreachable`: its time ran out while too few nodes
 * could be asked to renew it. `quarantined`: the same, and some of them were up but not admitted.
 * `released`: by its holder. `closed`: the locker was closed.
 */
export type LeaseLostReason = "expired" | "taken" | "unreachable" | "quarantined" | "released" | "closed";

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
