// What the control flow may ask of one Redis master. Questions never fail for anything the world does: a node that cannot be
// asked answers `unreachable`, within nodeTimeoutMs of the call. No counting, no retries, no policy here.
import type { ExtendBallot, GrantBallot, InspectBallot, RaiseBallot, ReleaseBallot, SealBallot } from "./ballot.js";

/** An answer to come. Can be awaited; whoever asks for it before it is there is told without another turn of the microtasks. One may ask. */
export interface Answer<B> {
  then(told: (ballot: B) => void, failed?: (error: unknown) => void): void;
}

export interface Ownership {
  /** One or more; taken all or none. */
  readonly resources: readonly string[];
  /** The secret of one attempt. */
  readonly owner: string;
}

export interface GrantQuestion extends Ownership {
  /** For humans: host, pid, service. */
  readonly label: string;
  readonly ttlMs: number;
  /** The asker has waited for it. Others may, too, and the lock will say so: a release looks for waiters only where it does. */
  readonly hasWaited?: true | undefined;
}

export interface ReleaseQuestion extends Ownership {
  /**
   * At which seat to begin to tell who waits: the lease's token, which is the same on every node and rises, so that everybody's turn comes. 0 tells nobody: for an
   * attempt that gives back its part of a split vote.
   */
  readonly turn: number;
}

/** Who waits sits in one of so many seats per resource, numbered from 0; a release is told to two of them. */
export const WAKE_SLOTS = 16;

/** What one node tells the waiters of one seat. */
export interface ReleaseNews {
  /** 0 for the seat whose turn it is, 1 for the one told in case nobody is awake there. */
  readonly rank: number;
  /** How many sit in this seat, the hearer included. */
  readonly listeners: number;
}

/** Told by one node about one resource. Calls must not throw. */
export interface ReleaseListener {
  released(news: ReleaseNews): void;
  /** Listening began, for the first time or again after the connection was lost: whatever was published before may have been missed. */
  listening(): void;
}

export interface LockNode {
  /** "n1"… in the order of configuration. */
  readonly name: string;
  /** host:port without credentials. */
  readonly address: string;

  /**
   * The node's epoch as last heard, or undefined before first contact. Every admission of any member of the fleet gives the nodes it reads a new random epoch.
   * An attempt notes the epochs before its first byte leaves and counts only ballots that carry the same one: a ballot with another epoch was cast after some
   * member's memory had been rebuilt from this node's floor, so a token stored here now was not seen by that rebuilding (T2).
   */
  epoch(): string | undefined;

  grant(question: GrantQuestion): Answer<GrantBallot>;
  /** Store `token` for all resources if they are all still ours there. */
  seal(question: Ownership & { readonly token: number }): Answer<SealBallot>;
  /** Renew where it is still ours; never creates a key. */
  extend(question: Ownership & { readonly ttlMs: number }): Answer<ExtendBallot>;
  /** Plant our key again where there is none; only after a quorum confirmed ownership in the same round. */
  heal(question: GrantQuestion & { readonly token: number }): Answer<ExtendBallot>;
  /**
   * Compare-and-delete, then tell who waits. Travels behind every earlier question on the same connection, so it also gives back a grant that is still on its way; if
   * the connection was lost meanwhile it is sent again on the next one, for as long as the key could live.
   */
  release(question: ReleaseQuestion): Answer<ReleaseBallot>;
  inspect(resource: string): Answer<InspectBallot>;
  /** Raise the counter to at least `token` whoever owns it; with `remove: "holder"` also delete the lock key and publish. */
  raise(question: { readonly resource: string; readonly token: number; readonly remove: "holder" | "nothing" }): Answer<RaiseBallot>;

  /** Takes a seat (0 … WAKE_SLOTS − 1) and hears of releases of the resource on this node. Best effort: the TTL is the guarantee. Returns the undo. */
  onReleased(resource: string, seat: number, listener: ReleaseListener): () => void;

  /** Resolves when the first connection attempt has succeeded or failed. */
  met(): Promise<void>;
  close(): Promise<void>;
}
