// What createLocker returns: the calls with their options, promises and answers; implemented by
// ../locker.ts.

import type { Ballot } from "./ballot.js";
import type { Campaign, CampaignOptions, Leader, TermRoutine } from "./campaign.js";
import type { LossReason } from "./errors.js";
import type { Finding, FleetMembers, FleetState, MemberChange, ReconfigureOptions } from "./fleet.js";
import type { FleetsChange, FleetsState } from "./fleets.js";
import type { ForcedRelease, HeldResources, Inspection, ListHeldOptions, NodeInspection } from "./inspection.js";
import type { Lease } from "./lease.js";

/** How a lease is kept once it is held. Times are in milliseconds. */
export interface KeepOptions {
  /**
   * Renew it before about a third of its ttl is over, until it is released. Default: false for
   * acquire, tryAcquire and adopt; `using` always renews.
   */
  readonly renew?: boolean;
  /** The lease ends so long after it was granted, renewed or not. Default: no limit. */
  readonly maxHoldMs?: number;
}

/** Options of tryAcquire. Times are in milliseconds. */
export interface TryAcquireOptions extends KeepOptions {
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
 */
export interface Locker extends AsyncDisposable {
  /**
   * Resolves when a quorum of nodes is connected and admitted. Rejects with LockError
   * `LOCK_NO_QUORUM` after the locker's waitMs, `FLEET_MISMATCH` when these nodes are not one
   * fleet, RangeError when the fleet's leases are shorter than this locker's maxTtlMs. Optional:
   * every other call waits for the first contact by itself, which takes at most twice
   * connectTimeoutMs.
   */
  ready(): Promise<FleetState>;
  /**
   * Waits for the resources, first in first out within this process, and takes them. Rejects with
   * LockError: `LOCK_HELD`, `LOCK_NO_QUORUM` or `LOCK_TOO_SLOW` when waitMs is over, `LOCK_ABORTED`
   * when the signal is aborted or the locker closed. A rejected call leaves nothing on any node:
   * what was granted is given back, also where the answer comes late.
   */
  acquire(resources: Resources, options?: AcquireOptions): Promise<Lease>;
  /**
   * Tries once and never waits for a holder: held, no quorum and too slow are answers. Rejects only
   * with `LOCK_ABORTED` and `FLEET_MISMATCH`.
   */
  tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted>;
  /**
   * Takes the resources, runs the routine with a lease that is renewed, and releases it, whatever
   * happens. Settles with the routine's own result or error, never with one of the release. When
   * the lease was lost while the routine ran, its result is not passed on: rejects with LockError
   * `LEASE_LOST`. A routine that released or serialized the lease itself has not lost it.
   */
  using<Result>(resources: Resources, routine: (lease: Lease) => Result | PromiseLike<Result>): Promise<Result>;
  using<Result>(
    resources: Resources,
    options: UsingOptions | undefined,
    routine: (lease: Lease) => Result | PromiseLike<Result>,
  ): Promise<Result>;
  /**
   * Stands for election as the leader of `resource`, until it is stopped: waits for the lease, runs
   * the routine with a term that is renewed, and stands again when the routine is done, the term
   * was lost or it resigned. One process leads at a time, in the sense in which one holds a lease.
   */
  campaign(resource: string, routine: TermRoutine, options?: CampaignOptions): Campaign;
  /**
   * Who leads now, as a quorum of nodes says; null if nobody does. Rejects with `LOCK_NO_QUORUM` if
   * that cannot be told.
   */
  leader(resource: string): Promise<Leader | null>;
  /**
   * Takes over a lease that was serialized: asks the nodes to hold it for this holder, for its ttl
   * from now. Of all who adopt one text at most one succeeds. Rejects with LockError `LEASE_LOST`
   * if the lease is no longer held or its text was adopted before, `LOCK_NO_QUORUM` if too few
   * nodes could be asked; then this locker may adopt the text again.
   */
  adopt(text: string, options?: KeepOptions): Promise<Lease>;
  /**
   * What each node stores of the resource, and what a quorum says. Waits for all nodes. Changes
   * nothing.
   */
  inspect(resource: string): Promise<Inspection>;
  /**
   * For operators: raises the token past the present holder's, then removes the holder. Its writes
   * are refused as soon as the store has seen the returned `fence` or the token of any later lease.
   * Rejects with `LOCK_NO_QUORUM` if that could not be done on a quorum. `reason` is published with
   * the event.
   */
  forceRelease(resource: string, options: { readonly reason: string }): Promise<ForcedRelease>;
  /**
   * Whether this token, or a higher one, was ever issued for the resource. Rejects with
   * `LOCK_NO_QUORUM` if too few nodes answered.
   */
  issued(resource: string, token: number): Promise<boolean>;
  /**
   * For the recovery of a store: the names of all resources that have had a lease within
   * `retentionMs`, perhaps with others. Rejects with `LOCK_NO_QUORUM` if too few nodes answered.
   */
  listResources(): Promise<readonly string[]>;
  /**
   * What is held now, by the word of a quorum for each resource. The nodes are asked in small
   * steps. Rejects with `LOCK_NO_QUORUM` if too few answered.
   */
  listHeld(options?: ListHeldOptions): Promise<HeldResources>;
  /** How each member stands now, by its own word. Rejects with `FLEET_MISMATCH` as all calls do. */
  nodes(): Promise<readonly NodeInspection[]>;
  /**
   * For the recovery of a store, and for resources that come from another fleet: a token that no
   * lease granted before the call exceeds, and that is at least `atLeast`, stored so that every
   * later lease exceeds it; without a resource, of any lease of any of them. 0 if there was never a
   * lease of any resource. Rejects with `LOCK_NO_QUORUM` if too few nodes answered, with RangeError
   * if no fleet can have issued `atLeast` by now: tokens rise with the wall clock, and what is
   * raised is never lowered.
   */
  highestToken(resource?: string, atLeast?: number): Promise<number>;
  /**
   * Raises a number under a name of the caller's choice to at least `atLeast` on a quorum, and
   * resolves with the highest that a quorum knows. It only rises, and is kept for ever; 0 only
   * reads. Rejects with `LOCK_NO_QUORUM` if too few nodes answered.
   */
  mark(name: string, atLeast: number): Promise<number>;
  /** The members of the fleet now. Rejects like `ready`. */
  members(): Promise<FleetMembers>;
  /**
   * For operators: adds, removes or replaces one member, or changes the longest lease, while leases
   * are taken and held. Resolves with the members once a majority of the former ones has agreed;
   * calling it again finishes a change that was interrupted, and does nothing where it is done.
   * Rejects with `LOCK_NO_QUORUM` if that takes longer than waitMs, with RangeError if the newcomer
   * belongs to another fleet.
   */
  reconfigure(change: MemberChange, options?: ReconfigureOptions): Promise<FleetMembers>;
  /**
   * For operators: founds a new fleet while these of its nodes are down. They are admitted when
   * they come, like nodes that lost their memory. Only if they have never been used: what they
   * remember is not asked for.
   */
  foundWithout(absent: readonly string[]): Promise<FleetMembers>;
  /** Among which fleets the resources are spread. Rejects with `FLEET_MISMATCH` as all calls do. */
  fleets(): Promise<FleetsState>;
  /**
   * For operators, of a locker with several fleets: names the first, adds or removes one. Resources
   * that move have no new holder for as long as a lease may last. The same call finishes a change
   * that was interrupted, the opposite one takes it back. Rejects like reconfigure.
   */
  changeFleets(change: FleetsChange, options?: ReconfigureOptions): Promise<FleetsState>;
  /**
   * Examines the nodes and the fleet. Takes and releases a lock of its own on each node, so that
   * missing rights show. Never rejects for what it finds.
   */
  doctor(): Promise<readonly Finding[]>;
  /**
   * Rejects waiting calls with `LOCK_ABORTED`, ends and releases the leases held here (except those
   * serialized for another process), disconnects. Idempotent.
   */
  close(): Promise<void>;
}
