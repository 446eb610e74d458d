// What scenarios run in: the servers, a gateway process and the worker processes. Everything started here is ended when
// the environment is disposed of; what was given stays.
import pg from "pg";
import { unfencedTable } from "../worker/store-client.js";
import { startGateway } from "./gateway-process.js";
import { Owned } from "./owned.js";
import { type GatewayAddress, reachGateway, reachNodes, type ServerAddresses, startServers } from "./servers.js";
import { WorkerPool } from "./worker-process.js";

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
    await prepareTable(databaseUrl);
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

async function prepareTable(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "palisade-demo" });
  await client.connect();
  try {
    await client.query(unfencedTable);
  } finally {
    await client.end();
  }
}
