// Who takes part in the rows of the lock: Palisade, as its README shows it; the least that any lock over N masters costs;
// and the other Redlock libraries, each used as its own documentation shows, with its own defaults where a row does not
// name another setting. Their types are not used, because some of them name another major of ioredis.
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createGatewayClient, withResource } from "@palisade/client";
import { createLocker } from "@palisade/lock";
import { Redis } from "ioredis";
import type { Kind } from "../measure/results.js";

export interface Held {
  release(): Promise<unknown>;
}

export interface Lock {
  /** Waits as its library does; rows of sets have no peers. */
  acquire(resource: string | readonly string[]): Promise<Held>;
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
  /** Of the whole cycle, and of PUTs alone: the server that is written to. */
  readonly server?: string;
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

const palisade: Library = {
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
const floor: Library = {
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
      async acquire(resource: string) {
        const owner = randomBytes(16).toString("base64url");
        await majority(clients, quorum, (client) => client.evalsha(acquireHash, 1, resource, owner, ttlMs));
        return { release: () => majority(clients, quorum, (client) => client.evalsha(releaseHash, 1, resource, owner)) };
      },
      close: async () => disconnect(clients),
    };
  },
};

/** Nodes that cannot be reached are connected to later, by ioredis itself. */
async function connected(urls: readonly string[], autoPipelining: boolean): Promise<readonly Redis[]> {
  const clients = urls.map((url) => new Redis(url, { enableAutoPipelining: autoPipelining }));
  await majority(clients, Math.floor(urls.length / 2) + 1, (client) => client.ping());
  return clients;
}

function disconnect(clients: readonly Redis[]): void {
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

const peers = { redlock5, sesamecare, universal, semaphore } as const;

// The cycle of a user, in the place of acquire: take the lock, read, write, give it back. And the write alone.

const order = { status: "paid", total: 4_200, currency: "EUR", lines: Array.from({ length: 5 }, (_, i) => ({ sku: `A-${i}`, count: i })) };
const done: Held = { release: async () => {} };
const agent = new Agent({ keepAlive: true });

/** As one writes it by hand: the status and the body of the answer. */
function exchange(server: string, path: string, body?: string): Promise<unknown> {
  const { hostname: host, port } = new URL(server);
  const headers =
    body === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body), "fencing-token": "7" };
  return new Promise((resolve, reject) => {
    const sent = request(
      { agent, host, port, method: body === undefined ? "GET" : "PUT", path: `/v1/resources/orders/${path.replaceAll("/", "-")}`, headers },
      (answer) => {
        let text = "";
        answer.setEncoding("utf8").on("data", (part: string) => (text += part));
        answer.on("end", () => resolve(JSON.parse(text)));
      },
    );
    sent.on("error", reject).end(body);
  });
}

async function cycleOf(urls: readonly string[], { from, server = "", ttlMs }: Settings) {
  const [create, { createGatewayClient: open, withResource: cycle }] =
    from === undefined ? [createLocker, { createGatewayClient, withResource }] : [await createLockerOf(from), await clientOf(from)];
  const locker = create({ nodes: urls, ttlMs });
  await locker.ready();
  return { locker, client: open({ url: server }), cycle };
}

const cycle: Library = {
  name: "withResource",
  kind: "ours",
  does: "lock with a token, seal and read, write under the token, release",
  async open(urls, settings) {
    const { locker, client, cycle } = await cycleOf(urls, settings);
    return {
      async acquire(resource) {
        await cycle(locker, client, String(resource), () => order);
        return done;
      },
      close: () => locker.close(),
    };
  },
};

const cycleByHand = peer("redlock 5, Express 5 + pg", "lock without a token, GET, PUT over node:http, release", (clients, settings) => {
  const Redlock = require("redlock").default as new (clients: readonly Redis[], settings: object) => AcquireStyle;
  const redlock = new Redlock(clients, patient({ ...settings, retryMs: FAST_RETRY_MS }));
  redlock.on("error", () => {});
  return async (resource) => {
    const lock = await redlock.acquire([resource], settings.ttlMs);
    await exchange(settings.server ?? "", resource);
    await exchange(settings.server ?? "", resource, JSON.stringify(order));
    await lock.release();
    return done;
  };
});

const clientPut: Library = {
  name: "client.put",
  kind: "ours",
  does: "checks what it is given, a time limit, tries again, reads the answer",
  async open(_, { from, server = "" }) {
    const { createGatewayClient: open } = from === undefined ? { createGatewayClient } : await clientOf(from);
    const client = open({ url: server });
    return {
      async acquire(resource) {
        const stored = await client.put(String(resource), order, { token: 7 });
        if (!stored.ok) throw new Error(stored.code);
        return done;
      },
      close: async () => {},
    };
  },
};

const barePut = peer("node:http", "the same PUT by hand, kept alive; the answer is parsed", (_, { server = "" }) => {
  return async (resource) => {
    await exchange(server, resource, JSON.stringify(order));
    return done;
  };
});

async function clientOf(checkout: string): Promise<typeof import("@palisade/client")> {
  return (await import(pathToFileURL(join(checkout, "packages", "client", "dist", "index.js")).href)) as typeof import("@palisade/client");
}

interface Entrant {
  readonly name: string;
  readonly library: Library;
  /** Beside the usual ones. */
  readonly settings: Partial<Settings>;
}

/** ioredis' own batching, which a team that measures would switch on. */
const pipelined = { autoPipelining: true } as const;
const FAST_RETRY_MS = 10;

const plain = { floor, palisade, before: palisade, ...peers, cycle, cycleByHand, clientPut, barePut } as const;

const entrants: Readonly<Record<string, Entrant>> = {
  ...Object.fromEntries(Object.entries(plain).map(([key, library]) => [key, { name: library.name, library, settings: {} }])),
  ...Object.fromEntries(
    Object.entries({ floor, ...peers }).flatMap(([key, library]) => [
      [`${key}+`, { name: `${library.name}, auto-pipelining`, library, settings: pipelined }],
      [`${key}!`, { name: `${library.name}, retry ${FAST_RETRY_MS} ms`, library, settings: { ...pipelined, retryMs: FAST_RETRY_MS } }],
    ]),
  ),
  before: { name: "@palisade/lock beside it", library: palisade, settings: {} },
};

export function byKey(key: string): Entrant {
  const found = entrants[key];
  if (found === undefined) throw new RangeError(`nothing to be measured is called ${key}`);
  return found;
}
