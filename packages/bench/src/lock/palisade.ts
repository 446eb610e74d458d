// Palisade's own lock, as its README shows it.
import { createLocker } from "@palisade/lock";
import { type Contestant, ttlMs, type Waiter } from "./contestant.js";

export async function enterPalisade(urls: readonly string[]): Promise<Contestant & Waiter> {
  const locker = createLocker({ nodes: urls, ttlMs, waitMs: 60_000 });
  await locker.ready();
  return {
    name: "@palisade/lock",
    tokens: "yes",
    async cycle(resource) {
      const lease = await locker.acquire(resource);
      await lease.release();
    },
    async take(resource) {
      const lease = await locker.acquire(resource);
      return () => lease.release();
    },
    close: () => locker.close(),
  };
}
