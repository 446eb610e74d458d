// The leases of a worker, from its locker or from a plain lock. Reports renewals and losses.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { channelNames, createLocker, type Lease, LockError, type Locker, type RenewalEvent, type Term } from "@palisade/lock";
import { PlainLock, type PlainLockOptions } from "./plain-lock.js";
import { type Granted, monotonicMs, type NotGranted, type Resource, type WorkerConfig } from "./protocol.js";

interface LeaseListener {
  renewed(outcome: string, remainingMs: number): void;
  lost(lease: Lease | Term, reason: string): void;
}

interface AcquireOptions {
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly renew?: boolean;
}

export class Leases {
  readonly #locker: Locker;
  readonly #listener: LeaseListener;
  readonly #leases = new Map<string, Lease>();
  readonly #terms = new Map<string, Term>();
  /** By their options. */
  readonly #plainLocks = new Map<string, Promise<PlainLock>>();
  /** Those that hold a resource. */
  readonly #plainHolders = new Map<string, PlainLock>();

  constructor(config: WorkerConfig, listener: LeaseListener) {
    const { name, redisUrls, ttlMs, maxTtlMs, nodeTimeoutMs } = config;
    this.#listener = listener;
    this.#locker = createLocker({
      nodes: redisUrls,
      // Every lease has its own ttl; the default must be no shorter than the wait for a node.
      ttlMs: Math.max(ttlMs, nodeTimeoutMs),
      nodeTimeoutMs,
      label: name,
      // Long, so that a slow machine does not look like a node that cannot be reached.
      connectTimeoutMs: 30_000,
      waitMs: 60_000,
      ...(maxTtlMs === undefined ? {} : { maxTtlMs }),
    });
    subscribe(channelNames.renewal, this.#onRenewal);
  }

  async ready(): Promise<void> {
    await this.#locker.ready();
  }

  async close(): Promise<void> {
    unsubscribe(channelNames.renewal, this.#onRenewal);
    for (const lock of this.#plainLocks.values()) (await lock).close();
    await this.#locker.close();
  }

  async acquire({ shown, name }: Resource, options: AcquireOptions): Promise<Granted | NotGranted> {
    try {
      const lease = await this.#locker.acquire(name, options);
      const grantedAt = monotonicMs();
      this.#terms.delete(name);
      this.#leases.set(name, lease);
      lease.signal.addEventListener("abort", () => this.#onLoss(lease), { once: true });
      return { ok: true, token: lease.token, grantedAt, validUntilAt: grantedAt + lease.remainingMs() };
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      const quarantined = error.ballots.filter(({ kind }) => kind === "quarantined").length;
      return { ok: false, code: error.code, message: error.message.replaceAll(name, shown), quarantined };
    }
  }

  /** Resolves when this worker is elected; whenever a term ends it stands again. */
  lead({ name }: Resource, ttlMs: number): Promise<Granted> {
    return new Promise((resolve, reject) => {
      const campaign = this.#locker.campaign(
        name,
        async (term) => {
          const grantedAt = monotonicMs();
          this.#terms.set(name, term);
          resolve({ ok: true, token: term.token, grantedAt, validUntilAt: grantedAt + term.remainingMs() });
          if (!term.signal.aborted) await once(term.signal, "abort");
          this.#onLoss(term);
        },
        { ttlMs },
      );
      campaign.ended.catch(reject);
    });
  }

  async release({ name }: Resource): Promise<void> {
    await this.#leaseOf(name).release();
  }

  /** Undefined under a plain lock, and without a lease. */
  tokenOf({ name }: Resource): number | undefined {
    return (this.#terms.get(name) ?? this.#leases.get(name))?.token;
  }

  /** By the holder's own clock. */
  remainingMs({ name }: Resource): number {
    return this.#plainHolders.get(name)?.remainingMs(name) ?? (this.#terms.get(name) ?? this.#leaseOf(name)).remainingMs();
  }

  /** One plain lock for the same options; resolves when enough nodes, or all, have answered. */
  plainLock(options: PlainLockOptions, awaited: "every node" | "enough nodes" = "enough nodes"): Promise<PlainLock> {
    const key = JSON.stringify(options);
    const known = this.#plainLocks.get(key);
    if (known !== undefined) return known;
    const lock = new PlainLock(options);
    const connected = lock.ready(awaited).then(() => lock);
    this.#plainLocks.set(key, connected);
    return connected;
  }

  async takePlain({ name }: Resource, options: PlainLockOptions): Promise<boolean> {
    const lock = await this.plainLock(options);
    const taken = await lock.take(name);
    if (taken) this.#plainHolders.set(name, lock);
    return taken;
  }

  /** How many nodes removed a key. */
  async releasePlain({ name }: Resource, check: "owner" | "none"): Promise<number> {
    const lock = this.#plainHolders.get(name);
    if (lock === undefined) throw new Error(`this worker never took ${name}`);
    return await lock.release(name, check);
  }

  readonly #onRenewal = (message: unknown): void => {
    const { resources, outcome, remainingMs } = message as RenewalEvent;
    for (const _ of resources) this.#listener.renewed(outcome, remainingMs);
  };

  #onLoss(lease: Lease | Term): void {
    const reason = (lease.signal.reason as LockError).reason ?? "expired";
    // These two the worker did itself.
    if (reason !== "released" && reason !== "closed") this.#listener.lost(lease, reason);
  }

  #leaseOf(name: string): Lease {
    const lease = this.#leases.get(name);
    if (lease === undefined) throw new Error(`no lease of ${name} was ever granted to this worker`);
    return lease;
  }
}
