// A lock, with every lease recorded as its holder sees it. Invariant: every instant is read in the
// order that can only make the lease look shorter and its acquire look earlier, so that a violation
// that is found is one.
import { subscribe } from "node:diagnostics_channel";
import { channelNames, createLocker, type LockerOptions, nodesOrFleets, type RenewalEvent } from "@palisade/lock";
import type { LineWriter } from "../history/history.js";
import { nowMs } from "../history/records.js";

export interface Lease {
  readonly token: number;
  /** The first, or only, one. */
  readonly resource: string;
  readonly resources: readonly string[];
  readonly signal: AbortSignal;
  remainingMs(): number;
  release(): Promise<unknown>;
}

export interface HeldLease extends Lease, AsyncDisposable {}

export interface Wish {
  readonly ttlMs: number;
  readonly renew?: boolean;
  readonly waitMs?: number;
}

/** What a run needs from a lock: Palisade's, or the control's. */
export interface Lock {
  ready(): Promise<unknown>;
  /** Throws an error with a code when the lock is not to be had. */
  acquire(resources: string | readonly string[], wish: Wish): Promise<Lease>;
  close(): Promise<unknown>;
}

export function palisadeLock(urls: readonly string[], settings: Omit<LockerOptions, "nodes" | "fleets">): Lock {
  const locker = createLocker({ ...nodesOrFleets(urls), ...settings });
  return {
    ready: () => locker.ready(),
    acquire: (resources, wish) => locker.acquire(resources, wish),
    close: () => locker.close(),
  };
}

/** remainingMs() = when the first byte left + ttl − this − now. */
export function allowanceMs(ttlMs: number): number {
  return ttlMs * 0.01 + 2;
}

export class RecordedLock {
  readonly #lock: Lock;
  readonly #lines: LineWriter;
  readonly #renewing = new Map<number, () => void>();

  constructor(lock: Lock, lines: LineWriter) {
    this.#lock = lock;
    this.#lines = lines;
    subscribe(channelNames.renewal, (event) => this.#renewing.get((event as RenewalEvent).token)?.());
  }

  ready(): Promise<unknown> {
    return this.#lock.ready();
  }

  async acquire(resources: string | readonly string[], { ttlMs, renew = false, waitMs = 1_500 }: Wish): Promise<HeldLease> {
    const lease = await this.#lock.acquire(resources, { ttlMs, renew, waitMs }).catch((error: Error & { code?: string }) => {
      if (error.code !== undefined) this.#lines.write({ e: "unlocked", at: nowMs(), code: error.code });
      throw error;
    });
    const { token, resource, signal } = lease;
    const grantedAt = nowMs();
    const validUntilAt = nowMs() + lease.remainingMs();
    const beganAt = Math.min(grantedAt, validUntilAt - ttlMs + allowanceMs(ttlMs));
    this.#lines.write({ e: "lease", resources: lease.resources, token, beganAt, grantedAt, validUntilAt });
    const onEnd = (): void => this.#lines.write({ e: "told", token, resource, at: nowMs() });
    if (signal.aborted) onEnd();
    else signal.addEventListener("abort", onEnd, { once: true });
    if (renew) this.#renewing.set(token, () => this.#renewed(lease));
    const release = (): Promise<unknown> => {
      this.#renewing.delete(token);
      signal.removeEventListener("abort", onEnd);
      this.#lines.write({ e: "released", token, resource, at: nowMs() });
      return lease.release();
    };
    return {
      token,
      resource,
      resources: lease.resources,
      signal,
      remainingMs: () => lease.remainingMs(),
      release,
      [Symbol.asyncDispose]: async () => void (await release()),
    };
  }

  close(): Promise<unknown> {
    return this.#lock.close();
  }

  #renewed(lease: Lease): void {
    const at = nowMs();
    const leftMs = lease.remainingMs();
    // A lease that ended before its renewal was heard of is not longer now.
    const { token, resource } = lease;
    if (leftMs > 0) this.#lines.write({ e: "renewed", token, resource, validUntilAt: at + leftMs });
  }
}

const TRIES = 10;

export async function firstContact(contender: { ready(): Promise<unknown> }): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await contender.ready();
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}
