// Palisade's own lock, as its README shows it.
import { createLocker } from "@palisade/lock";
import { type Contestant, TTL_MS, type Waiter } from "./contestant.js";

export async function openPalisade(urls: readonly string[]): Promise<Contestant & Waiter> {
  const locker = createLocker({ nodes: urls, ttlMs: TTL_MS, waitMs: 60_000 });
  await locker.ready();
  return {
    name: "@palisade/lock",
    tokens: "yes",
    async acquireAndRelease(resource) {
      const lease = await locker.acquire(resource);
      await lease.release();
    },
    async acquire(resource) {
      const lease = await locker.acquire(resource);
      return () => lease.release();
    },
    close: () => locker.close(),
  };
}
