// A lock, with every lease recorded as its holder sees it. Invariant: every instant is read in the
// order that can only make the lease look shorter and its acquire look earlier, so that a violation
// that is found is one.
import { subscribe } from "node:diagnostics_channel";
import { channelNames, createLocker, type LockerOptions, type RenewalEvent } from "@palisade/lock";
import { type LeaseLine, type LineWriter, nowMs } from "../history.js";

export interface Lease {
  readonly token: number;
  /** The first, or only, one. */
  readonly resource: string;
  readonly resources: readonly string[];
  readonly signal: AbortSignal;
  remainingMs(): number;
  release(): Promise<unknown>;
}

export type HeldLease = Lease & AsyncDisposable;

interface Wish {
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

export function palisadeLock(urls: readonly string[], settings: Omit<LockerOptions, "nodes">): Lock {
  return createLocker({ nodes: urls, ...settings });
}

/** remainingMs() = when the first byte left + ttl − this − now. */
export function allowanceMs(ttlMs: number): number {
  return ttlMs * 0.01 + 2;
}

export class RecordedLock {
  readonly #lock: Lock;
  readonly #lines: LineWriter;
  readonly #renewing = new Map<number, () => void>();
  #count = 0;

  constructor(lock: Lock, lines: LineWriter) {
    this.#lock = lock;
    this.#lines = lines;
    subscribe(channelNames.renewal, (event) => this.#renewing.get((event as RenewalEvent).token)?.());
  }

  ready(): Promise<unknown> {
    return this.#lock.ready();
  }

  async acquire(resources: string | readonly string[], { ttlMs, renew = false, waitMs = 1_500 }: Wish): Promise<HeldLease> {
    const lease = await this.#lock.acquire(resources, { ttlMs, renew, waitMs });
    const { token, resource, signal } = lease;
    const at = nowMs();
    const validUntilAt = nowMs() + lease.remainingMs();
    const beganAt = Math.min(at, validUntilAt - ttlMs + allowanceMs(ttlMs));
    const number = ++this.#count;
    let known: LeaseLine = { e: "lease", at, number, resources: lease.resources, token, beganAt, grantedAt: at, validUntilAt };
    const write = (news: Partial<LeaseLine>): void => {
      known = { ...known, ...news };
      this.#lines.write(known);
    };
    write({});
    const onEnd = (): void => write({ at: nowMs(), toldAt: nowMs() });
    if (signal.aborted) onEnd();
    else signal.addEventListener("abort", onEnd, { once: true });
    const onRenewal = (): void => {
      const heardAt = nowMs();
      const leftMs = lease.remainingMs();
      // A lease that ended before its renewal was heard of is not longer now.
      if (leftMs > 0) write({ at: heardAt, validUntilAt: Math.max(known.validUntilAt, heardAt + leftMs) });
    };
    if (renew) this.#renewing.set(token, onRenewal);
    const release = (): Promise<unknown> => {
      this.#renewing.delete(token);
      signal.removeEventListener("abort", onEnd);
      write({ at: nowMs(), releasedAt: known.releasedAt ?? nowMs() });
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
