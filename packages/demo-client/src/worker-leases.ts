// The leases of a worker, by resource: from its own locker, or from a lock made by hand. Decides only what a refusal looks like to the director.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channelNames, createLocker, type Lease, LockError, type Locker, type RenewalEvent } from "@palisade/lock";
import { type ClassicLease, ClassicLock, type ClassicOptions } from "./classic-lock.js";
import type { NotAcquired, Report, Surroundings, Verbs } from "./worker-protocol.js";

type Sign = Extract<Report, { readonly sign: "lease_lost" | "renewed" }>;

export class HeldLeases {
  readonly #locker: Locker;
  readonly #leases = new Map<string, Lease>();
  readonly #classic = new Map<string, { readonly lock: ClassicLock; readonly lease: ClassicLease }>();
  /** By their options. */
  readonly #locks = new Map<string, Promise<ClassicLock>>();
  readonly #tell: (sign: Sign) => void;

  constructor({ name, redisUrls, namespace, ttlMs, maxTtlMs, nodeTimeoutMs }: Surroundings, tell: (sign: Sign) => void) {
    this.#tell = tell;
    this.#locker = createLocker({
      nodes: redisUrls,
      namespace,
      // Of no lease here, and no less than the patience with a node.
      ttlMs: Math.max(ttlMs, nodeTimeoutMs),
      nodeTimeoutMs,
      label: name,
      // As patient with its start: how fast this machine is, is no part of any story.
      connectTimeoutMs: 30_000,
      waitMs: 60_000,
      ...(maxTtlMs === undefined ? {} : { maxTtlMs }),
    });
    subscribe(channelNames.renewal, this.#onRenewal);
  }

  async ready(): Promise<void> {
    await this.#locker.ready();
  }

  async acquire({ resource, ...options }: Verbs["acquire"]["with"]): Promise<Verbs["acquire"]["answer"]> {
    const startedAt = performance.now();
    try {
      const lease = await this.#locker.acquire(resource, options);
      const tookMs = performance.now() - startedAt;
      const grantedAt = Number(process.hrtime.bigint()) / 1e6;
      this.#leases.set(resource, lease);
      lease.signal.addEventListener("abort", () => this.#tellLoss(lease), { once: true });
      const granted = lease.ballots.filter(({ kind }) => kind === "granted").length;
      const remainingMs = lease.remainingMs();
      const validUntilAt = grantedAt + remainingMs;
      return { ok: true, token: lease.token, remainingMs, tookMs, grantedAt, validUntilAt, granted, nodes: lease.ballots.length };
    } catch (error) {
      return refusal(error);
    }
  }

  async release(resource: string): Promise<Verbs["release"]["answer"]> {
    const { outcome } = await this.#of(resource).release();
    return { ok: true, outcome };
  }

  async takeClassic({ resource, lock: options }: Verbs["takeClassic"]["with"]): Promise<Verbs["takeClassic"]["answer"]> {
    const lock = await this.#connected(options, "enough nodes");
    const lease = await lock.take(resource);
    if (lease === undefined) return { ok: true, taken: false, remainingMs: 0 };
    this.#classic.set(resource, { lock, lease });
    return { ok: true, taken: true, remainingMs: lease.validUntilAt - performance.now() };
  }

  async connectClassic(options: ClassicOptions): Promise<Verbs["connectClassic"]["answer"]> {
    await this.#connected(options, "every node");
    return { ok: true };
  }

  async releaseClassic({ resource, check }: Verbs["releaseClassic"]["with"]): Promise<Verbs["releaseClassic"]["answer"]> {
    const held = this.#classic.get(resource);
    if (held === undefined) throw new Error(`this worker never took ${resource}`);
    return { ok: true, removed: await held.lock.release(held.lease, check) };
  }

  /** What the holder itself thinks. */
  believes(resource: string): Verbs["believes"]["answer"] {
    const classic = this.#classic.get(resource);
    const remainingMs = classic === undefined ? this.#of(resource).remainingMs() : classic.lease.validUntilAt - performance.now();
    return { ok: true, held: remainingMs > 0, remainingMs };
  }

  /** Undefined under a lock made by hand, or under none. */
  tokenOf(resource: string): number | undefined {
    return this.#leases.get(resource)?.token;
  }

  async close(): Promise<void> {
    unsubscribe(channelNames.renewal, this.#onRenewal);
    for (const lock of this.#locks.values()) (await lock).close();
    await this.#locker.close();
  }

  readonly #onRenewal = (message: unknown): void => {
    const { resources, outcome, remainingMs } = message as RenewalEvent;
    for (const resource of resources) this.#tell({ sign: "renewed", resource, outcome, remainingMs });
  };

  #connected(options: ClassicOptions, who: Parameters<ClassicLock["ready"]>[0]): Promise<ClassicLock> {
    const address = JSON.stringify(options);
    const known = this.#locks.get(address);
    if (known !== undefined) return known;
    const lock = new ClassicLock(options);
    const connected = lock.ready(who).then(() => lock);
    this.#locks.set(address, connected);
    return connected;
  }

  #of(resource: string): Lease {
    const lease = this.#leases.get(resource);
    if (lease === undefined) throw new Error(`no lease of ${resource} was ever granted to this worker`);
    return lease;
  }

  #tellLoss({ resource, token, signal }: Lease): void {
    const reason = (signal.reason as LockError).reason ?? "expired";
    // What the worker did itself is no news.
    if (reason !== "released" && reason !== "closed") this.#tell({ sign: "lease_lost", resource, token, reason });
  }
}

/** What the world does is an answer; anything else is a bug of this worker. */
function refusal(error: unknown): NotAcquired {
  if (!(error instanceof LockError)) throw error;
  const quarantined = error.ballots.filter(({ kind }) => kind === "quarantined").length;
  return { ok: false, code: error.code, message: error.message, quarantined };
}
