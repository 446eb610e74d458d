// The leases of a worker, from its locker or from a plain lock. Reports renewals and losses.

import { randomBytes } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { channelNames, createLocker, type Lease, LockError, type Locker, type RenewalEvent } from "@palisade/lock";
import { Redis } from "ioredis";
import { type Granted, monotonicMs, type NotGranted, type Resource, type WorkerConfig } from "./protocol.js";

interface LeaseListener {
  renewed(outcome: string, remainingMs: number): void;
  lost(lease: Lease, reason: string): void;
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
      this.#leases.set(name, lease);
      lease.signal.addEventListener("abort", () => this.#onLoss(lease), { once: true });
      return { ok: true, token: lease.token, grantedAt, validUntilAt: grantedAt + lease.remainingMs() };
    } catch (error) {
      if (!(error instanceof LockError)) throw error;
      const quarantined = error.ballots.filter(({ kind }) => kind === "quarantined").length;
      return { ok: false, code: error.code, message: error.message.replaceAll(name, shown), quarantined };
    }
  }

  async release({ name }: Resource): Promise<void> {
    await this.#leaseOf(name).release();
  }

  /** Undefined under a plain lock, and without a lease. */
  tokenOf({ name }: Resource): number | undefined {
    return this.#leases.get(name)?.token;
  }

  /** By the holder's own clock. */
  remainingMs({ name }: Resource): number {
    return this.#plainHolders.get(name)?.remainingMs(name) ?? this.#leaseOf(name).remainingMs();
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

  #onLoss(lease: Lease): void {
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

// A lock without tokens, as people write it by hand, for controls: SET NX PX on one Redis, or on
// several with a majority (published Redlock). It shows what happens when something goes wrong, and
// is for nothing else.

/** What a careful implementation checks; a control leaves one of the checks out. */
export interface PlainLockOptions {
  readonly urls: readonly string[];
  readonly ttlMs: number;
  /** How many nodes must say yes; the majority when absent. */
  readonly quorum?: number;
  /** Whether to look, after the answers have come, how much of the lease is left. */
  readonly elapsedTime?: "checked" | "ignored";
  /** How long to wait for a node; a quarter of the ttl when absent. */
  readonly nodeTimeoutMs?: number;
}

const COMPARE_AND_DELETE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

export class PlainLock {
  readonly #options: PlainLockOptions;
  readonly #nodes: readonly Redis[];
  readonly #leases = new Map<string, { readonly owner: string; readonly validUntilAt: number }>();

  constructor(options: PlainLockOptions) {
    this.#options = options;
    this.#nodes = options.urls.map((url) => {
      const node = new Redis(url, { enableOfflineQueue: true, maxRetriesPerRequest: 0, retryStrategy: () => 50 });
      // A node that cannot be reached has no vote; its commands fail by themselves.
      node.on("error", () => undefined);
      return node;
    });
  }

  /** Asks each node once. */
  async take(resource: string): Promise<boolean> {
    const { ttlMs, elapsedTime = "checked" } = this.#options;
    const owner = randomBytes(8).toString("hex");
    const startedAt = performance.now();
    const votes = this.#nodes.map((node) => this.#answerOf(node.set(keyOf(resource), owner, "PX", ttlMs, "NX")));
    const enough = await this.#enough(votes, "OK");
    const validUntilAt = (elapsedTime === "ignored" ? performance.now() : startedAt) + ttlMs;
    const inTime = elapsedTime === "ignored" || performance.now() < validUntilAt;
    if (enough && inTime) this.#leases.set(resource, { owner, validUntilAt });
    else await this.#delete(resource, owner);
    return enough && inTime;
  }

  /** By the holder's own clock. */
  remainingMs(resource: string): number {
    return (this.#leases.get(resource)?.validUntilAt ?? 0) - performance.now();
  }

  /** With the check of the owner, or without. Returns how many nodes removed a key. */
  async release(resource: string, check: "owner" | "none"): Promise<number> {
    const lease = this.#leases.get(resource);
    if (lease === undefined) throw new Error(`this worker never took ${resource}`);
    return await this.#delete(resource, check === "owner" ? lease.owner : undefined);
  }

  async #delete(resource: string, owner: string | undefined): Promise<number> {
    const key = keyOf(resource);
    const ask = (node: Redis): Promise<unknown> => (owner === undefined ? node.del(key) : node.eval(COMPARE_AND_DELETE, 1, key, owner));
    const votes = await Promise.all(this.#nodes.map((node) => this.#answerOf(ask(node))));
    return votes.filter((vote) => vote === 1).length;
  }

  /** Resolves when every node has answered once, or enough of them for a lock. */
  async ready(awaited: "every node" | "enough nodes"): Promise<void> {
    const answers = this.#nodes.map((node) => this.#answerOf(node.ping()));
    if (awaited === "every node") await Promise.all(answers);
    else await this.#enough(answers, "PONG");
  }

  /** Resolves as soon as a quorum has given this answer, or when every node has answered. */
  #enough(answers: readonly Promise<unknown>[], wanted: string): Promise<boolean> {
    const { quorum = Math.floor(this.#nodes.length / 2) + 1 } = this.#options;
    let count = 0;
    return new Promise((resolve) => {
      const counted = answers.map(async (answer) => {
        if ((await answer) !== wanted) return;
        count += 1;
        if (count >= quorum) resolve(true);
      });
      void Promise.all(counted).then(() => resolve(count >= quorum));
    });
  }

  close(): void {
    for (const node of this.#nodes) node.disconnect();
  }

  /** A node's answer, or undefined from one that cannot be asked or is too slow. */
  async #answerOf(answer: Promise<unknown>): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const tooSlow = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), this.#options.nodeTimeoutMs ?? this.#options.ttlMs / 4);
    });
    try {
      return await Promise.race([answer.catch(() => undefined), tooSlow]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function keyOf(resource: string): string {
  return `plain:${resource}`;
}
