// What createLocker returns: the calls with their options, promises and answers (implemented by
// ../locker.ts), the lease (lease/held-lease.ts) and the election of a leader (waiting/campaign.ts).
import type { Ballot, LossReason } from "./ballot.js";
import type { Fleet, FleetState, Inspection } from "./fleet.js";

/** Options of tryAcquire. Times are in milliseconds. */
export interface TryAcquireOptions {
  /**
   * Renew it before about a third of its ttl is over, until it is released. Default: false for
   * acquire and tryAcquire; `using` always renews.
   */
  readonly renew?: boolean;
  /** The lease ends so long after it was granted, renewed or not. Default: no limit. */
  readonly maxHoldMs?: number;
  /** How long the lease lasts unless it is renewed. Default: the locker's ttlMs. */
  readonly ttlMs?: number;
}

/** Options of acquire. Times are in milliseconds. */
export interface AcquireOptions extends TryAcquireOptions {
  /**
   * How long to wait for it; 0: one attempt; Infinity: as long as it takes. Default: the locker's
   * waitMs. A request already sent is finished.
   */
  readonly waitMs?: number;
  /**
   * Gives up waiting: acquire rejects with LockError `LOCK_ABORTED`, whose cause is the signal's
   * reason. Has no effect on a lease once granted.
   */
  readonly signal?: AbortSignal;
}

/** Options of using, which always renews. */
export type UsingOptions = Omit<AcquireOptions, "renew">;

/** The answer of tryAcquire. `ballots` says which node answered what, also after a success. */
export type Attempted =
  | { readonly ok: true; readonly lease: Lease; readonly ballots: readonly Ballot[] }
  | {
      readonly ok: false;
      readonly reason: LossReason;
      /**
       * In how many milliseconds enough of the present holders could run out at the earliest;
       * absent where that is not known.
       */
      readonly retryAfterMs?: number;
      /** What happened, in words. */
      readonly message: string;
      readonly ballots: readonly Ballot[];
    };

/**
 * One resource, or several that are taken all or none, with one token that is higher than any
 * before it for each of them.
 */
export type Resources = string | readonly string[];

/**
 * A lock over one fleet. Made by createLocker; one per process and namespace is enough. Disposing
 * of it closes it.
 *
 * @example
 * const locker = createLocker({ nodes: ["redis://a:6379", "redis://b:6379", "redis://c:6379"] });
 * await locker.using("orders/42", async (lease) => {
 *   await store.write("orders/42", document, { token: lease.token, signal: lease.signal });
 * });
 */
export interface Locker extends AsyncDisposable {
  /**
   * Waits for the resources, first in first out within this process, and takes them. Rejects with
   * LockError: `LOCK_HELD`, `LOCK_NO_QUORUM` or `LOCK_TOO_SLOW` when waitMs is over, `LOCK_ABORTED`
   * when the signal is aborted or the locker closed. A rejected call leaves nothing on any node:
   * what was granted is given back, also where the answer comes late.
   *
   * @example
   * const lease = await locker.acquire("orders/42", { waitMs: 5_000, renew: true });
   * try {
   *   await store.write("orders/42", document, { token: lease.token });
   * } finally {
   *   await lease.release();
   * }
   */
  acquire(resources: Resources, options?: AcquireOptions): Promise<Lease>;
  /**
   * Tries once and never waits for a holder: held, no quorum and too slow are answers. Rejects only
   * with `LOCK_ABORTED` and `FLEET_MISMATCH`.
   *
   * @example
   * const attempt = await locker.tryAcquire("nightly-report");
   * if (!attempt.ok) return attempt.message;
   */
  tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted>;
  /**
   * Takes the resources, runs the routine with a lease that is renewed, and releases it, whatever
   * happens. Settles with the routine's own result or error, never with one of the release. When
   * the lease was lost while the routine ran, its result is not passed on: rejects with LockError
   * `LEASE_LOST`. A routine that released the lease itself has not lost it.
   *
   * @example
   * const total = await locker.using("accounts/7", async (lease) => transfer(lease.token, lease.signal));
   */
  using<Result>(resources: Resources, routine: (lease: Lease) => Result | PromiseLike<Result>): Promise<Result>;
  using<Result>(
    resources: Resources,
    options: UsingOptions | undefined,
    routine: (lease: Lease) => Result | PromiseLike<Result>,
  ): Promise<Result>;
  /**
   * Stands for election as the leader of `resource`, until it is stopped: waits for the lease, runs
   * the routine with a term that is renewed, and stands again when the routine is done or has
   * thrown, the term was lost or it resigned. What it throws while it leads is published as the
   * event `palisade:lock:campaign`, or else a warning of the process. One process leads at a time,
   * in the sense in which one holds a lease.
   *
   * @example
   * const campaign = locker.campaign("scheduler", async (term) => {
   *   while (!term.signal.aborted) await runDueJobs(term.token);
   * });
   */
  campaign(resource: string, routine: TermRoutine, options?: CampaignOptions): Campaign;
  /**
   * Who leads now, as a quorum of nodes says; null if nobody does. Rejects with `LOCK_NO_QUORUM` if
   * that cannot be told.
   */
  leader(resource: string): Promise<Leader | null>;
  /**
   * What each node stores of the resource, and what a quorum says. Waits for all nodes. Changes
   * nothing.
   */
  inspect(resource: string): Promise<Inspection>;
  /**
   * Resolves when a quorum of nodes is connected and admitted. Rejects with LockError
   * `LOCK_NO_QUORUM` after the locker's waitMs, `FLEET_MISMATCH` when these nodes are not one
   * fleet, RangeError when the fleet's leases are shorter than this locker's maxTtlMs. Optional:
   * every other call waits for the first contact by itself, which takes at most twice
   * connectTimeoutMs.
   */
  ready(): Promise<FleetState>;
  /**
   * Rejects waiting calls with `LOCK_ABORTED`, ends and releases the leases held here, disconnects.
   * Idempotent.
   */
  close(): Promise<void>;
  /**
   * What operators and stores ask of the nodes together: what is held, who votes, which tokens were
   * issued, and changes of the fleet itself.
   */
  readonly fleet: Fleet;
}

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

/** For how long and how a process stands for election. Times are in milliseconds. */
export interface CampaignOptions {
  /**
   * How long a term outlasts a leader that has died or cannot reach the nodes. Default: the
   * locker's ttlMs. A term is renewed for as long as the routine runs.
   */
  readonly ttlMs?: number;
  /** A term ends after so long, and others have their turn. Default: no limit. */
  readonly maxHoldMs?: number;
  /** Ends the campaign, like `stop`. */
  readonly signal?: AbortSignal;
  /**
   * What `leader()` says of this process while it leads: its address, say. At most 256 bytes, for
   * everybody to see. Default: the locker's label.
   */
  readonly label?: string;
}

/** The time for which this process leads. At most one process has one at a time. */
export interface Term {
  /** What is led: the name of the campaign. */
  readonly resource: string;
  /**
   * The fencing token of this term, higher than that of every earlier one. Send it with every
   * write: a leader may be stopped right after any check.
   */
  readonly token: number;
  /**
   * Aborts when the term ends: its time ran out, it was taken away, resigned or stopped. The reason
   * is a LockError `LEASE_LOST`.
   */
  readonly signal: AbortSignal;
  /** Whether this process leads at this very moment, by our own clock. */
  readonly leads: boolean;
  /** Milliseconds until the end of the term if it is not renewed; 0 when it has ended. */
  remainingMs(): number;
  /** Throws LockError `LEASE_LOST` unless this process leads now. */
  assertLeads(): void;
}

/** Does what a leader does, until it is done or the term's signal aborts. */
export type TermRoutine = (term: Term) => unknown;

/** One process's candidature. Disposing of it stops it. */
export interface Campaign extends AsyncDisposable {
  /** What is led. */
  readonly resource: string;
  /** The present term of this process, if it leads. */
  readonly term: Term | undefined;
  /**
   * Resolves when the campaign has been stopped or its locker closed, and the last routine has
   * settled. Rejects with LockError `FLEET_MISMATCH` or RangeError where the nodes cannot be used;
   * then this process stands for election no more. Need not be caught.
   */
  readonly ended: Promise<void>;
  /**
   * Gives up the present term: aborts its signal, waits for the routine, and lets another process
   * lead. This process stands for election again after a pause. No-op where it does not lead. Not
   * to be awaited by the routine, for which it waits; a routine that returns ends its term.
   */
  resign(): Promise<void>;
  /**
   * Gives up the present term, and stands for election no more. Resolves like `ended`. Not to be
   * awaited by the routine.
   */
  stop(): Promise<void>;
}

/** Who leads. */
export interface Leader {
  /** What it called itself: the label of its campaign, or else of its locker. */
  readonly label: string;
  /** That of its term, or one below while nodes do not answer. */
  readonly token: number;
  /** For how long its term lasts at most if it is not renewed, in milliseconds. */
  readonly remainingMs: number;
}
