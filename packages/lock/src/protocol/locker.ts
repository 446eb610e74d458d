// What createLocker gives: the calls, what they promise, and what they answer. How it is done is locker.ts.

import type { Inspection } from "../lease/inspect.js";
import type { ForcedRelease } from "../lease/raise.js";
import type { AcquireOptions, KeepOptions, TryAcquireOptions, UsingOptions } from "../options/lease-request.js";
import type { Finding, FleetState } from "../redis/open-nodes.js";
import type { Ballot } from "./ballot.js";
import type { LossReason } from "./errors.js";
import type { Lease } from "./lease.js";

/** The answer of tryAcquire. `ballots` says which node answered what, also after a success. */
export type Attempted =
  | { readonly ok: true; readonly lease: Lease; readonly ballots: readonly Ballot[] }
  | {
      readonly ok: false;
      readonly reason: LossReason;
      /** The earliest moment from now, in milliseconds, at which enough of the present holders could run out; absent where that is not known. */
      readonly retryAfterMs?: number;
      /** What happened, in words. */
      readonly message: string;
      readonly ballots: readonly Ballot[];
    };

/** One resource, or several that are taken all or none, with one token that is higher than any before it for each of them. */
export type Resources = string | readonly string[];

/** A lock over one fleet. Made by createLocker; one per process and namespace is enough. Disposing of it closes it. */
export interface Locker extends AsyncDisposable {
  /**
   * Resolves when a quorum of nodes is connected and believed. Rejects with LockError `LOCK_NO_QUORUM` when that has not come about within the locker's waitMs,
   * `FLEET_MISMATCH` when these nodes are not one fleet, RangeError when the fleet's leases are shorter than this locker's maxTtlMs. Not required: every other call waits
   * for the first contact by itself, which takes at most twice connectTimeoutMs.
   */
  ready(): Promise<FleetState>;
  /**
   * Waits for the resources, first in first out within this process, and takes them. Rejects with LockError: `LOCK_HELD`, `LOCK_NO_QUORUM` or `LOCK_TOO_SLOW` when
   * waitMs is over, `LOCK_ABORTED` when the signal is aborted or the locker closed. A call that was rejected leaves nothing on any node.
   */
  acquire(resources: Resources, options?: AcquireOptions): Promise<Lease>;
  /** Tries once and never waits for a holder: what is held, out of reach or too slow is an answer. Rejects only with `LOCK_ABORTED` and `FLEET_MISMATCH`. */
  tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted>;
  /**
   * Takes the resources, runs the routine with a lease that is renewed, and releases it, whatever happens. Gives the routine's own result or error, never one of the
   * release; whether the lease lasted is in `lease.signal` and `lease.assertHeld()`.
   */
  using<Result>(resources: Resources, routine: (lease: Lease) => Result | PromiseLike<Result>): Promise<Result>;
  using<Result>(
    resources: Resources,
    options: UsingOptions | undefined,
    routine: (lease: Lease) => Result | PromiseLike<Result>,
  ): Promise<Result>;
  /**
   * Takes over a lease that another process serialized: asks the nodes to hold it for its ttl from now. Rejects with LockError `LEASE_LOST` if it is no longer that
   * lease's, `LOCK_NO_QUORUM` if too few nodes could be asked.
   */
  adopt(text: string, options?: KeepOptions): Promise<Lease>;
  /** What each node knows of the resource, and what a quorum says. Waits for all nodes. Changes nothing. */
  inspect(resource: string): Promise<Inspection>;
  /**
   * For operators: fences the present holder, then removes it. Its writes are refused as soon as the store has heard of the returned `fence` or of any later lease.
   * Rejects with `LOCK_NO_QUORUM` if that could not be done on a quorum. `reason` goes to the telemetry.
   */
  forceRelease(resource: string, options: { readonly reason: string }): Promise<ForcedRelease>;
  /** Whether this token, or a higher one, was ever issued for the resource. Rejects with `LOCK_NO_QUORUM` if too few nodes answered to tell. */
  issued(resource: string, token: number): Promise<boolean>;
  /** Examines the nodes and the fleet. Never rejects because of what it finds. */
  doctor(): Promise<readonly Finding[]>;
  /** Rejects everybody who waits with `LOCK_ABORTED`, ends and releases the leases held here (except those serialized for others), disconnects. Idempotent. */
  close(): Promise<void>;
}
