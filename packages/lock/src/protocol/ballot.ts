// One node's answer to one question. Every answer names its node; "could not be asked" is never the same word as "said no".
// Nothing here decides anything: counting is quorum/tally.ts.

/** A node that could not be asked, or did not answer within nodeTimeoutMs. It may still have executed the question. */
export interface Unreachable {
  readonly kind: "unreachable";
  readonly node: string;
  /** Short and stable: ECONNREFUSED, TIMEOUT after 50 ms, NOAUTH, READONLY, garbage reply… */
  readonly cause: string;
  /** Present where it is certain that nothing left for the node: then there is nothing to give back either. */
  readonly unsent?: true;
}

/** A node that is up, but whose memory is not believed in this life of the server. */
export interface Quarantined {
  readonly kind: "quarantined";
  readonly node: string;
  /** Earliest moment from now at which it can be admitted, where known. */
  readonly readyInMs?: number;
}

/** Yes: the resources are ours on this node. */
export interface Granted {
  readonly kind: "granted";
  readonly node: string;
  /** The highest token this node has now stored for the resources of the question. */
  readonly token: number;
  /** The node's epoch at the moment of the grant; see LockNode.epoch. */
  readonly epoch: string;
}

/** No: somebody else has at least one of the resources on this node. */
export interface Held {
  readonly kind: "held";
  readonly node: string;
  /** The first resource of the question that is somebody else's, who has it (its label), and for how long at most. */
  readonly resource: string;
  readonly holder: string;
  readonly remainingMs: number;
}

/**
 * A grant, seal or raise that must not be counted: between the noting of the node's epoch and this answer, some member's memory was rebuilt from this node, and what
 * it stored for us was not seen by that rebuilding. Made from a node's answer by the round that compares the epochs; never sent by a node.
 */
export interface EpochMoved {
  readonly kind: "epoch_moved";
  readonly node: string;
}

/** Answer to the question for a grant. */
export type GrantBallot = Granted | Held | Quarantined | Unreachable;

/** `sealed`: the node still had us as owner and now stores the token. `lost`: it had not, and stored nothing. */
export type SealBallot =
  | { readonly kind: "sealed"; readonly node: string; readonly epoch: string }
  | { readonly kind: "lost"; readonly node: string }
  | Quarantined
  | Unreachable;

/** `missing`: no owner there (the key ran out or was forgotten); `taken`: somebody else's by now. */
export type ExtendBallot =
  | { readonly kind: "extended"; readonly node: string }
  | { readonly kind: "missing"; readonly node: string }
  | { readonly kind: "taken"; readonly node: string; readonly holder: string; readonly remainingMs: number }
  | Quarantined
  | Unreachable;

/**
 * `absent`: it was not ours there any more; the caller did nothing wrong. `listeners`: how many subscribers the node told of it (the highest over the resources),
 * this process included; a process that has just released yields to them.
 */
export type ReleaseBallot =
  | { readonly kind: "released"; readonly node: string; readonly listeners: number }
  | { readonly kind: "absent"; readonly node: string }
  | Unreachable;

/** What one node knows of one resource. `token` is its counter, or its floor where the counter has run out. */
export type InspectBallot =
  | {
      readonly kind: "seen";
      readonly node: string;
      readonly holder: string | null;
      /** Equal where it is the same acquisition: labels may be many holders' own, as all of one process have one. Nothing can be released with it. */
      readonly owner: string | null;
      readonly remainingMs: number | null;
      readonly token: number;
    }
  | Quarantined
  | Unreachable;

/** Answer to raising the counter of a resource without owning it (break-glass and read repair). */
export type RaiseBallot =
  | { readonly kind: "raised"; readonly node: string; readonly token: number; readonly epoch: string; readonly removed: string | null }
  | Quarantined
  | Unreachable;

/** Any answer to any question; `kind` and the question tell which. */
export type Ballot = GrantBallot | EpochMoved | SealBallot | ExtendBallot | ReleaseBallot | InspectBallot | RaiseBallot;
