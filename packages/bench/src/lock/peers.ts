// The other Redlock libraries, each used as its own documentation shows, with its own defaults
// where a row does not name another setting. Their types are not used, because some of them name
// another major of ioredis.
import { createRequire } from "node:module";
import type { Redis } from "ioredis";
import { connected, disconnect, type Held, type Library, type Settings } from "./library.js";

const require = createRequire(import.meta.url);

type Acquire = (resource: string) => Promise<Held>;

function peer(name: string, does: string, makeAcquire: (clients: readonly Redis[], settings: Settings) => Acquire): Library {
  return {
    name,
    kind: "peer",
    does,
    async open(urls, settings) {
      const clients = await connected(urls, settings.autoPipelining);
      return { acquire: makeAcquire(clients, settings), close: async () => disconnect(clients) };
    },
  };
}

interface AcquireStyle {
  acquire(resources: readonly string[], ttl: number): Promise<{ release(): Promise<unknown> }>;
  on(event: "error", listener: () => void): void;
}

const DEFAULT_RETRY_MS = 200;

/** By default they give up after ten tries; a caller that waits for a held lock needs more. */
function patient({ waitMs, retryMs }: Settings): object {
  const retryCount = Math.ceil(waitMs / (retryMs ?? DEFAULT_RETRY_MS));
  return { retryCount, ...(retryMs === undefined ? {} : { retryDelay: retryMs, retryJitter: retryMs }) };
}

function acquireStyle(name: string, load: () => new (clients: readonly Redis[], settings: object) => AcquireStyle): Library {
  return peer(name, "EVALSHA to each node, answers of a majority; no token", (clients, settings) => {
    const Redlock = load();
    const redlock = new Redlock(clients, patient(settings));
    redlock.on("error", () => {}); // One event for each refused try while it waits.
    return async (resource) => {
      const lock = await redlock.acquire([resource], settings.ttlMs);
      return { release: () => lock.release() };
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

const redlock5 = acquireStyle("redlock 5.0.0-beta.2", () => require("redlock").default);
const sesamecare = acquireStyle("@sesamecare-oss/redlock 1.4", () => require("@sesamecare-oss/redlock").Redlock);

const redlock4 = peer("redlock 4.2", "EVAL to each node, answers of a majority; no token", (clients, settings) => {
  const Redlock = require("redlock4") as new (clients: readonly Redis[], settings: object) => Redlock4;
  const redlock = new Redlock(clients, patient(settings));
  return async (resource) => {
    const lock = await redlock.lock(resource, settings.ttlMs);
    return { release: () => lock.unlock() };
  };
});

const universal = peer("redlock-universal 0.8.5", "SET NX and EVAL to each node; no token", (clients, { ttlMs, waitMs, retryMs }) => {
  const { createRedlock, IoredisAdapter } = require("redlock-universal") as Universal;
  const adapters = clients.map((client) => new IoredisAdapter(client));
  const pause = retryMs === undefined ? {} : { retryDelay: retryMs };
  return async (resource) => {
    const lock = createRedlock({
      adapters,
      key: resource,
      ttl: ttlMs,
      retryAttempts: Math.ceil(waitMs / (retryMs ?? DEFAULT_RETRY_MS)),
      ...pause,
    });
    const handle = await lock.acquire();
    return { release: () => lock.release(handle) };
  };
});

const semaphore = peer("redis-semaphore 5.8", "SET NX and EVALSHA to each node, answers of all; no token", (clients, settings) => {
  const { RedlockMutex } = require("redis-semaphore") as {
    RedlockMutex: new (clients: readonly Redis[], key: string, options: object) => SemaphoreMutex;
  };
  const { ttlMs, waitMs, retryMs } = settings;
  const options = {
    lockTimeout: ttlMs,
    refreshInterval: 0,
    acquireTimeout: waitMs,
    ...(retryMs === undefined ? {} : { retryInterval: retryMs }),
  };
  return async (resource) => {
    const mutex = new RedlockMutex(clients, resource, options);
    await mutex.acquire();
    return { release: () => mutex.release() };
  };
});

export const peers = { redlock5, sesamecare, redlock4, universal, semaphore } as const;
