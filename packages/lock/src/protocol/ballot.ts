// One node's answer to one request. "Could not be asked" and "said no" are different kinds, because
// only the second counts against a majority.

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
 * stored.
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
  /** Present where the caller has a place among those that wait for it there. */
  readonly hasTicket?: true;
}

/**
 * A grant, seal or raise that must not be counted (T2): after the caller noted the node's
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
 * since the node could not be asked for it. `listeners`: how many processes waited there (the
 * highest over the resources), this process included.
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
      /** Its release looks for waiters. */
      readonly hasWaiters?: true;
      /** Free, and reserved for a moment for a process that has waited for it. */
      readonly isReserved?: true;
    }
  | Quarantined
  | Unreachable;

/** Answer to raising the counter of a resource without owning it (break-glass and read repair). */
export type RaiseBallot =
  | {
      readonly kind: "raised";
      readonly node: string;
      readonly token: number;
      readonly epoch: string;
      readonly removed: string | null;
    }
  | Quarantined
  | Unreachable;

/** Any answer to any request; `kind` and the request tell which. */
export type Ballot = GrantBallot | EpochMoved | SealBallot | ExtendBallot | ReleaseBallot | InspectBallot | RaiseBallot;
