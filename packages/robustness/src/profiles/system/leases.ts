// The lock, with every lease written down as its holder sees it. Every instant is read in the order that can only make the lease look shorter and its attempt look
// earlier: a violation that is found is one.
import { subscribe } from "node:diagnostics_channel";
import { channelNames, createLocker, type Locker, type RenewalEvent } from "@palisade/lock";
import { nowMs } from "../../history/lease-record.js";
import type { Journal } from "./journal.js";
import { MAX_TTL_MS, NODE_TIMEOUT_MS, TTL_MS } from "./words.js";

export interface HeldLease extends AsyncDisposable {
  readonly token: number;
  /** The first, or only, one. */
  readonly resource: string;
  readonly signal: AbortSignal;
  remainingMs(): number;
  release(): Promise<unknown>;
}

export interface Wish {
  readonly ttlMs: number;
  readonly renew?: boolean;
  readonly waitMs?: number;
}

/** remainingMs() = when the first byte left + ttl − this − now. */
const allowance = (ttlMs: number): number => ttlMs * 0.01 + 2;

export class Leases {
  readonly #locker: Locker;
  readonly #journal: Journal;
  readonly #renewing = new Map<number, () => void>();

  constructor(urls: readonly string[], label: string, journal: Journal) {
    this.#journal = journal;
    this.#locker = createLocker({
      nodes: [...urls],
      ttlMs: TTL_MS,
      maxTtlMs: MAX_TTL_MS,
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      connectTimeoutMs: 500,
      label,
    });
    subscribe(channelNames.renewal, (event) => this.#renewing.get((event as RenewalEvent).token)?.());
  }

  async ready(): Promise<void> {
    await this.#locker.ready();
  }

  /** Throws the lock's own error when it is not to be had. */
  async acquire(resources: string | readonly string[], { ttlMs, renew = false, waitMs = 1_500 }: Wish): Promise<HeldLease> {
    const lease = await this.#locker.acquire(resources, { ttlMs, renew, waitMs }).catch((error: Error & { code?: string }) => {
      if (error.code !== undefined) this.#journal.write({ e: "unlocked", at: nowMs(), code: error.code });
      throw error;
    });
    const { token, resource, signal } = lease;
    const grantedAt = nowMs();
    const validUntilAt = nowMs() + lease.remainingMs();
    const beganAt = Math.min(grantedAt, validUntilAt - ttlMs + allowance(ttlMs));
    this.#journal.write({ e: "lease", resources: lease.resources, token, beganAt, grantedAt, validUntilAt });
    const onEnd = (): void => this.#journal.write({ e: "told", token, resource, at: nowMs() });
    if (signal.aborted) onEnd();
    else signal.addEventListener("abort", onEnd, { once: true });
    const onRenewal = (): void => {
      const at = nowMs();
      const leftMs = lease.remainingMs();
      // It had ended before that was heard of: nothing is longer now.
      if (leftMs > 0) this.#journal.write({ e: "renewed", token, resource, validUntilAt: at + leftMs });
    };
    if (renew) this.#renewing.set(token, onRenewal);
    const release = async (): Promise<unknown> => {
      this.#renewing.delete(token);
      signal.removeEventListener("abort", onEnd);
      this.#journal.write({ e: "released", token, resource, at: nowMs() });
      return lease.release();
    };
    return {
      token,
      resource,
      signal,
      remainingMs: () => lease.remainingMs(),
      release,
      [Symbol.asyncDispose]: async () => void (await release()),
    };
  }

  async close(): Promise<void> {
    await this.#locker.close();
  }
}
