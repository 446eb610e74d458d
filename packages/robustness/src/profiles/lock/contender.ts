// What a client of a fault run needs from a lock, and the real one by these words.
import { createLocker } from "@palisade/lock";
import { type ClientOrders, RESOURCE } from "./client-words.js";

export interface Held {
  readonly token: number;
  readonly signal: AbortSignal;
  remainingMs(): number;
  release(): Promise<unknown>;
}

export interface Wish {
  readonly ttlMs: number;
  readonly renew: boolean;
}

export interface Contender {
  ready(): Promise<unknown>;
  /** Waits for a while, then throws an error with a code. */
  acquire(wish: Wish): Promise<Held>;
  close(): Promise<void>;
}

/** How long one call of acquire waits. */
export const WAIT_MS = 3_000;

export function palisade({ urls, ttlMs, maxTtlMs, nodeTimeoutMs, client }: ClientOrders): Contender {
  const locker = createLocker({ nodes: urls, ttlMs, maxTtlMs, nodeTimeoutMs, waitMs: WAIT_MS, label: `client ${client}` });
  return {
    ready: () => locker.ready(),
    acquire: ({ ttlMs: leaseMs, renew }) => locker.acquire(RESOURCE, { ttlMs: leaseMs, renew }),
    close: () => locker.close(),
  };
}
