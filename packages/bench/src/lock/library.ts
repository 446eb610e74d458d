// What a lock library has to offer to be measured, and the two that are no peers: Palisade's own,
// as its README shows it, and the least that any lock over N masters costs.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createLocker } from "@palisade/lock";
import { Redis } from "ioredis";
import type { Kind } from "../measure/results.js";

export interface Held {
  release(): Promise<unknown>;
}

export interface Lock {
  /** Waits as its library does. */
  acquire(resource: string): Promise<Held>;
  close(): Promise<void>;
}

export interface Settings {
  readonly ttlMs: number;
  /** After that a caller gives up. */
  readonly waitMs: number;
  /** Of ioredis: the commands of one turn of the event loop leave together. */
  readonly autoPipelining: boolean;
  /** Of libraries that poll; their own default where absent. */
  readonly retryMs?: number;
  /** Of Palisade: another built checkout, to be compared with this one. */
  readonly from?: string;
}

export interface Library {
  readonly name: string;
  readonly kind: Kind;
  readonly does: string;
  open(urls: readonly string[], settings: Settings): Promise<Lock>;
}

export const usualSettings: Settings = { ttlMs: 10_000, waitMs: 300_000, autoPipelining: false };

/** Of a new fleet, unless it is told otherwise. */
const USUAL_MAX_TTL_MS = 60_000;

export const palisade: Library = {
  name: "@palisade/lock",
  kind: "ours",
  does: "a token with each lease; nodes are asked as one script call per turn of the event loop",
  async open(urls, { ttlMs, waitMs, from }) {
    const create = from === undefined ? createLocker : await createLockerOf(from);
    // Apart, since records of another version may have another format; keys of one length.
    const namespace = from === undefined ? "palisade" : "besideit";
    const locker = create({ nodes: urls, namespace, ttlMs, waitMs, ...(ttlMs > USUAL_MAX_TTL_MS ? { maxTtlMs: ttlMs } : {}) });
    await locker.ready();
    return {
      async acquire(resource) {
        const lease = await locker.acquire(resource);
        return { release: () => lease.release() };
      },
      close: () => locker.close(),
    };
  },
};

async function createLockerOf(checkout: string): Promise<typeof createLocker> {
  const file = pathToFileURL(join(checkout, "packages", "lock", "dist", "index.js"));
  return ((await import(file.href)) as { readonly createLocker: typeof createLocker }).createLocker;
}

const ACQUIRE = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** The libraries are compared with it. */
export const floor: Library = {
  name: "floor: EVALSHA, majority",
  kind: "bound",
  does: "one EVALSHA to each node through ioredis, answers of a majority; no token, no retry, no check",
  async open(urls, { ttlMs, autoPipelining }) {
    const clients = await connected(urls, autoPipelining);
    const load = async (script: string): Promise<string> => {
      const hashes = await Promise.all(clients.map((client) => client.script("LOAD", script)));
      return String(hashes[0]);
    };
    const [acquireHash, releaseHash] = [await load(ACQUIRE), await load(RELEASE)];
    const quorum = Math.floor(urls.length / 2) + 1;
    return {
      async acquire(resource) {
        const owner = randomBytes(16).toString("base64url");
        await majority(clients, quorum, (client) => client.evalsha(acquireHash, 1, resource, owner, ttlMs));
        return { release: () => majority(clients, quorum, (client) => client.evalsha(releaseHash, 1, resource, owner)) };
      },
      close: async () => disconnect(clients),
    };
  },
};

/** Nodes that cannot be reached are connected to later, by ioredis itself. */
export async function connected(urls: readonly string[], autoPipelining: boolean): Promise<readonly Redis[]> {
  const clients = urls.map((url) => new Redis(url, { enableAutoPipelining: autoPipelining }));
  await majority(clients, Math.floor(urls.length / 2) + 1, (client) => client.ping());
  return clients;
}

export function disconnect(clients: readonly Redis[]): void {
  for (const client of clients) client.disconnect();
}

function majority(clients: readonly Redis[], quorum: number, ask: (client: Redis) => Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    let answered = 0;
    let failed = 0;
    for (const client of clients) {
      ask(client).then(
        () => {
          answered += 1;
          if (answered === quorum) resolve();
        },
        (error) => {
          failed += 1;
          if (failed > clients.length - quorum) reject(error);
        },
      );
    }
  });
}
