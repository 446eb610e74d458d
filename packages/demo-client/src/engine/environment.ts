// What scenarios run in: five independent Redis masters, Postgres, a gateway process and the worker
// processes, on free ports of this machine unless servers are given. Everything started here is
// ended when the environment is disposed of.
import { createGatewayClient } from "@palisade/client";
import { createLocker, type Locker } from "@palisade/lock";
import { PostgresServer, queryAt, RedisFleet } from "@palisade/testkit";
import { unfencedTable } from "../worker/store-client.js";
import { startGateway } from "./gateway-process.js";
import { WorkerPool } from "./worker-process.js";

/** Things that were opened together and are closed together, the last one first. */
export class Owned implements AsyncDisposable {
  readonly #things: AsyncDisposable[] = [];

  own<Thing extends AsyncDisposable>(thing: Thing): Thing {
    this.#things.push(thing);
    return thing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const thing of this.#things.splice(0).reverse()) await thing[Symbol.asyncDispose]();
  }
}

interface ServerAddresses {
  readonly redisUrls?: readonly string[] | undefined;
  readonly databaseUrl?: string | undefined;
}

interface GatewayAddress {
  readonly url: string;
  readonly apiKey?: string | undefined;
}

export interface Servers extends AsyncDisposable {
  readonly redisUrls: readonly string[];
  readonly databaseUrl: string;
  /** One line for each kind. */
  readonly description: readonly string[];
}

async function startServers(given: ServerAddresses = {}): Promise<Servers> {
  const [redis, postgres] = await both(
    // Where no Redis can be had, WebAssembly stands in, and the description says so.
    given.redisUrls === undefined ? RedisFleet.start({ nodes: 5, appendfsync: "always", fallback: "wasm" }) : undefined,
    given.databaseUrl === undefined ? PostgresServer.start() : undefined,
  );
  const redisUrls = given.redisUrls ?? redis?.urls ?? [];
  return {
    redisUrls,
    databaseUrl: given.databaseUrl ?? postgres?.url ?? "",
    description: [redis?.description ?? `${redisUrls.length} × Redis, given`, postgres?.description ?? "Postgres, given"],
    async [Symbol.asyncDispose]() {
      await Promise.all([redis?.stop(), postgres?.stop()]);
    },
  };
}

/** If one cannot be started, the other is stopped before the reason is passed on. */
async function both<A extends AsyncDisposable, B extends AsyncDisposable>(
  first: Promise<A> | undefined,
  second: Promise<B> | undefined,
): Promise<readonly [A | undefined, B | undefined]> {
  const [a, b] = await Promise.allSettled([first, second]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  for (const one of [a, b]) if (one.status === "fulfilled") await one.value?.[Symbol.asyncDispose]();
  const reason: unknown = a.status === "rejected" ? a.reason : (b as PromiseRejectedResult).reason;
  // Five nodes that fail for one reason are one sentence.
  const [one] = reason instanceof AggregateError ? (reason.errors as readonly Error[]) : [reason];
  throw new Error(`The servers do not come up: ${one instanceof Error ? one.message : String(one)}`, {
    cause: reason,
  });
}

/** What runs already. */
export interface Given extends ServerAddresses {
  readonly namespace?: string | undefined;
  readonly gateway?: GatewayAddress | undefined;
}

export interface Environment extends AsyncDisposable {
  readonly redisUrls: readonly string[];
  readonly namespace: string;
  readonly gateway: GatewayAddress;
  /** Where controls write; the gateway's own database, unless the gateway was given. */
  readonly databaseUrl: string;
  readonly workers: WorkerPool;
  /** One line for each thing that was started. */
  readonly description: readonly string[];
  readonly startedInMs: number;
}

export async function openEnvironment(given: Given = {}): Promise<Environment> {
  const startedAt = performance.now();
  if (given.gateway !== undefined) await reachGateway(given.gateway);
  if (given.redisUrls !== undefined) await reachNodes(given.redisUrls, given.namespace);
  const opened = new Owned();
  const workers = opened.own(new WorkerPool());
  workers.prepare(2);
  try {
    const { redisUrls, databaseUrl, description } = opened.own(await startServers(given));
    const namespace = given.namespace ?? "palisade";
    await queryAt(databaseUrl, unfencedTable);
    // Opened last, so closed before the servers, which it would otherwise miss.
    const gateway = given.gateway ?? opened.own(await startGateway({ databaseUrl, redisUrls, namespace }));
    const whose = given.gateway === undefined ? "a process of its own" : "given";
    return {
      redisUrls,
      namespace,
      gateway,
      databaseUrl,
      workers,
      description: [...description, `gateway, ${whose}: ${gateway.url}`],
      startedInMs: Math.round(performance.now() - startedAt),
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  } catch (error) {
    await opened[Symbol.asyncDispose]();
    throw error;
  }
}

/** Throws one sentence if the given gateway does not answer or does not accept the key. */
async function reachGateway({ url, apiKey }: GatewayAddress): Promise<void> {
  const client = createGatewayClient({ url, apiKey, timeoutMs: 5_000, retry: { attempts: 1 } });
  const answer = await client.get("demo");
  if (answer.ok || answer.code === "not_found") return;
  if (answer.code === "connection_failed" || answer.code === "timed_out") throw new Error(`No gateway answers at ${url}. ${answer.detail}`);
  if (answer.code !== "unauthenticated") throw new Error(`The gateway at ${url} cannot be used: ${answer.code}. ${answer.detail}`);
  throw new Error(
    apiKey === undefined
      ? `The gateway at ${url} asks for a key: give one with --api-key.`
      : `The gateway at ${url} does not know the key that was given with --api-key.`,
  );
}

/** Throws one sentence if a lock cannot be had from the given nodes. */
async function reachNodes(nodes: readonly string[], namespace = "palisade"): Promise<void> {
  let locker: Locker | undefined;
  try {
    locker = createLocker({ nodes, namespace, waitMs: 5_000 });
    await locker.ready();
  } catch (error) {
    throw new Error(`The given Redis nodes cannot be used. ${(error as Error).message}`, { cause: error });
  } finally {
    await locker?.close();
  }
}
