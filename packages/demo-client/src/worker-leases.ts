// The leases of a worker, by resource, from its own locker. Decides only what a refusal looks like to the director.
import { createLocker, type Lease, LockError, type Locker } from "@palisade/lock";
import type { No, Surroundings, Verbs } from "./worker-protocol.js";

export interface Lost {
  readonly resource: string;
  readonly token: number;
  readonly reason: string;
}

export class HeldLeases {
  readonly #locker: Locker;
  readonly #leases = new Map<string, Lease>();
  readonly #onLost: (lost: Lost) => void;

  constructor({ name, redisUrls, namespace, ttlMs, maxTtlMs, nodeTimeoutMs }: Surroundings, onLost: (lost: Lost) => void) {
    this.#onLost = onLost;
    this.#locker = createLocker({
      nodes: redisUrls,
      namespace,
      ttlMs,
      label: name,
      ...(maxTtlMs === undefined ? {} : { maxTtlMs }),
      ...(nodeTimeoutMs === undefined ? {} : { nodeTimeoutMs }),
    });
  }

  async ready(): Promise<void> {
    await this.#locker.ready();
  }

  async acquire({ resource, ...options }: Verbs["acquire"]["with"]): Promise<Verbs["acquire"]["answer"]> {
    const startedAt = performance.now();
    try {
      const lease = await this.#locker.acquire(resource, options);
      const tookMs = performance.now() - startedAt;
      this.#leases.set(resource, lease);
      lease.signal.addEventListener("abort", () => this.#tellLoss(lease), { once: true });
      const granted = lease.ballots.filter(({ kind }) => kind === "granted").length;
      return { ok: true, token: lease.token, remainingMs: lease.remainingMs(), tookMs, granted, nodes: this.#nodes(lease) };
    } catch (error) {
      return refusal(error);
    }
  }

  of(resource: string): Lease {
    const lease = this.#leases.get(resource);
    if (lease === undefined) throw new Error(`no lease of ${resource} was ever granted to this worker`);
    return lease;
  }

  async close(): Promise<void> {
    await this.#locker.close();
  }

  #nodes(lease: Lease): number {
    return lease.ballots.length;
  }

  #tellLoss({ resource, token, signal }: Lease): void {
    const reason = (signal.reason as LockError).reason ?? "expired";
    // What the worker did itself is no news.
    if (reason !== "released" && reason !== "closed") this.#onLost({ resource, token, reason });
  }
}

/** What the world does is an answer; anything else is a bug of this worker. */
export function refusal(error: unknown): No {
  if (!(error instanceof LockError)) throw error;
  return { ok: false, code: error.code, message: error.message };
}
