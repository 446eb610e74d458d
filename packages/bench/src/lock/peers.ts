// The other Redlock libraries, each used as its own documentation shows, with its own defaults.
// Their types are not used, because some of them name another major of ioredis.
import { createRequire } from "node:module";
import { Redis } from "ioredis";
import { type Contestant, type Open, openPalisade, TTL_MS, type Waiter } from "./contestant.js";

const require = createRequire(import.meta.url);

type Peer = Contestant & Waiter;
type Acquire = (resource: string) => Promise<() => Promise<unknown>>;

function peer(name: string, makeAcquire: (clients: readonly Redis[]) => Acquire): Open<Peer> {
  return async (urls) => {
    const clients = urls.map((url) => new Redis(url));
    await Promise.all(clients.map((client) => client.ping()));
    const acquire = makeAcquire(clients);
    return {
      name,
      tokens: "none",
      acquire,
      async acquireAndRelease(resource) {
        const release = await acquire(resource);
        await release();
      },
      async close() {
        for (const client of clients) client.disconnect();
      },
    };
  };
}

interface AcquireStyle {
  acquire(resources: readonly string[], ttl: number): Promise<{ release(): Promise<unknown> }>;
  on(event: "error", listener: () => void): void;
}

function acquireStyle(name: string, load: () => new (clients: readonly Redis[], settings?: object) => AcquireStyle): Open<Peer> {
  return peer(name, (clients) => {
    const Redlock = load();
    // By default it gives up after ten tries; a caller that waits for a held lock needs more.
    const redlock = new Redlock(clients, { retryCount: -1 });
    redlock.on("error", () => {}); // One event for each refused try while it waits.
    return async (resource) => {
      const lock = await redlock.acquire([resource], TTL_MS);
      return () => lock.release();
    };
  });
}

interface Redlock4 {
  lock(resource: string, ttl: number): Promise<{ unlock(): Promise<unknown> }>;
}

interface UniversalLock {
  acquire(): Promise<unknown>;
  release(handle: unknown): Promise<unknown>;
}

interface Universal {
  createRedlock(options: object): UniversalLock;
  IoredisAdapter: new (client: Redis) => object;
}

interface SemaphoreMutex {
  acquire(): Promise<void>;
  release(): Promise<void>;
}

export const peers: readonly Open<Peer>[] = [
  acquireStyle("redlock 5.0.0-beta.2", () => require("redlock").default),
  acquireStyle("@sesamecare-oss/redlock 1.4", () => require("@sesamecare-oss/redlock").Redlock),
  peer("redlock 4.2", (clients) => {
    const Redlock = require("redlock4") as new (clients: readonly Redis[], settings: object) => Redlock4;
    const redlock = new Redlock(clients, { retryCount: -1 });
    return async (resource) => {
      const lock = await redlock.lock(resource, TTL_MS);
      return () => lock.unlock();
    };
  }),
  peer("redlock-universal 0.8.5", (clients) => {
    const { createRedlock, IoredisAdapter } = require("redlock-universal") as Universal;
    const adapters = clients.map((client) => new IoredisAdapter(client));
    return async (resource) => {
      const lock = createRedlock({ adapters, key: resource, ttl: TTL_MS, retryAttempts: 10_000 });
      const handle = await lock.acquire();
      return () => lock.release(handle);
    };
  }),
  peer("redis-semaphore 5.8", (clients) => {
    const { RedlockMutex } = require("redis-semaphore") as {
      RedlockMutex: new (clients: readonly Redis[], key: string, options: object) => SemaphoreMutex;
    };
    return async (resource) => {
      const mutex = new RedlockMutex(clients, resource, { lockTimeout: TTL_MS, refreshInterval: 0, acquireTimeout: 60_000 });
      await mutex.acquire();
      return () => mutex.release();
    };
  }),
];

export const waiters: readonly Open<Waiter>[] = [openPalisade, ...peers];
