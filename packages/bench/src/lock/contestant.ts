// What a library has to offer to be measured. All libraries get the same servers and the same ttl.
// Palisade's own lock, as its README shows it, and the least that any lock costs.

import { randomBytes } from "node:crypto";
import { createLocker } from "@palisade/lock";
import { Redis } from "ioredis";

/** Acquires and releases on N independent Redis masters. */
export interface Contestant {
  readonly name: string;
  /** Whether its leases carry a fencing token. */
  readonly tokens: "none" | "yes";
  acquireAndRelease(resource: string): Promise<void>;
  close(): Promise<void>;
}

/** For measurements in which the lock is held when it is asked for: waits as its library does. */
export interface Waiter {
  readonly name: string;
  /** Returns the function that releases. */
  acquire(resource: string): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

/** Connects to the nodes. */
export type Open<T> = (urls: readonly string[]) => Promise<T>;

export const TTL_MS = 10_000;

// Palisade's own lock, as its README shows it.
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

// The least that any lock over N masters costs: one EVALSHA to each, answers of a majority, no
// token, no retry, no checks. The libraries are compared with it.
const ACQUIRE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

export async function openFloor(urls: readonly string[]): Promise<Contestant> {
  const clients = urls.map((url) => new Redis(url));
  const load = async (script: string): Promise<string> => {
    const hashes = await Promise.all(clients.map((client) => client.script("LOAD", script)));
    return String(hashes[0]);
  };
  const acquireHash = await load(ACQUIRE);
  const releaseHash = await load(RELEASE);
  const quorum = Math.floor(urls.length / 2) + 1;
  return {
    name: "floor: EVALSHA, majority",
    tokens: "none",
    async acquireAndRelease(resource) {
      const owner = randomBytes(16).toString("base64url");
      await majority(clients, quorum, (client) => client.evalsha(acquireHash, 1, resource, owner, TTL_MS));
      await majority(clients, quorum, (client) => client.evalsha(releaseHash, 1, resource, owner));
    },
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}

function majority(clients: readonly Redis[], quorum: number, ask: (client: Redis) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    let answered = 0;
    for (const client of clients) {
      ask(client).then(() => {
        answered += 1;
        if (answered === quorum) resolve();
      }, reject);
    }
  });
}
