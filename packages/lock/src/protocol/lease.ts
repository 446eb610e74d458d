// The lease as its holder sees it; implemented by lease/held-lease.ts.
import type { Ballot } from "./ballot.js";

/**
 * Exclusive use of one or several resources for a while, with the token by which a store tells
 * later holders from earlier ones.
 */
export interface Lease extends AsyncDisposable {
  /** The resources, in the order asked for. */
  readonly resources: readonly string[];
  /** The first, or only, resource. */
  readonly resource: string;
  /**
   * The fencing token: an integer from 1 to 999 999 999 999 999, higher than that of every earlier
   * lease of these resources. Send it with every write. It never changes, also not when the lease
   * has ended.
   */
  readonly token: number;
  /**
   * Aborts when the lease ends, for whatever reason, no later than its time runs out and without
   * hearing from any node. The reason is a LockError `LEASE_LOST`.
   */
  readonly signal: AbortSignal;
  /** Whether it is still held at this very moment, by our own clock. */
  readonly held: boolean;
  /**
   * What each node answered to the request for this lease; nodes slower than the quorum appear when
   * they have answered.
   */
  readonly ballots: readonly Ballot[];
  /** Milliseconds for which it is held if nothing else happens; 0 when it has ended. */
  remainingMs(): number;
  /**
   * Throws LockError `LEASE_LOST` unless the lease is held now, by the monotonic and by the wall
   * clock. Sound after a stall of the event loop, when `signal` may not have aborted yet. The
   * process may still be stopped right after this check: that is what the token is for.
   */
  assertHeld(): void;
  /**
   * Asks the nodes to hold it for ttlMs from now (default: the ttl last asked for). `renewed`: they
   * do. `unknown`: too few could be asked; the lease ends when it would have. Throws LockError
   * `LEASE_LOST` if it has ended or was taken away. A shorter ttl counts from the call on, whatever
   * the nodes answer.
   */
  extend(ttlMs?: number): Promise<Renewal>;
  /**
   * Gives it back. Idempotent; never rejects, whatever nodes and network do. `free`: a quorum of
   * nodes does not have it any more. `unconfirmed`: too few answered; the release is sent again
   * when they come back, and the keys run out by themselves.
   */
  release(): Promise<Release>;
  /**
   * Calls back when three quarters of the lease's time are over and it was not renewed, once per
   * renewal. Returns the undo. An error thrown by the listener is an uncaught exception.
   */
  onDanger(listener: (remainingMs: number) => void): () => void;
  /**
   * The lease as text, for `adopt`, which works once. The text is enough to extend and release the
   * lease: treat it like a password. The lease ends here with the reason `handed_over` and stays
   * held on the nodes for what is left of its ttl; to keep it after all, adopt the text. The end of
   * a scope or of the locker does not release it; `release` does, until the text was adopted.
   */
  serialize(): string;
}

/** What became of an extension. */
export interface Renewal {
  /**
   * `renewed`: a quorum holds it on. `unknown`: too few nodes answered, and its end has not moved.
   */
  readonly outcome: "renewed" | "unknown";
  /** What is left of the lease now, in milliseconds. */
  readonly remainingMs: number;
  /** What each node answered. */
  readonly ballots: readonly Ballot[];
}

/** What became of a release. */
export interface Release {
  /** `free`: a quorum does not have it any more. `unconfirmed`: too few nodes could be told. */
  readonly outcome: "free" | "unconfirmed";
  /** What each node answered. */
  readonly ballots: readonly Ballot[];
}
