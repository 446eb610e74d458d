// What a story is told on: five Redis masters, Postgres, a gateway process and the worker processes; own ones, or given ones that run already.
// Decides nothing about what is told. Everything started here is gone when the stage is disposed of.
import pg from "pg";
import { Crew } from "./crew.js";
import { unguardedTable } from "./desk.js";
import { startGateway } from "./gateway-process.js";
import { reachGateway, reachNodes } from "./given-servers.js";
import { type ServerAddresses, startServers } from "./servers.js";

/** What is there already. */
export interface Given extends ServerAddresses {
  readonly namespace?: string | undefined;
  readonly gateway?: GatewayAddress | undefined;
}

export interface GatewayAddress {
  readonly url: string;
  readonly apiKey?: string | undefined;
}

export interface Stage extends AsyncDisposable {
  readonly redisUrls: readonly string[];
  readonly namespace: string;
  readonly gateway: GatewayAddress;
  /** Where controls write; the gateway's own database, unless the gateway was given. */
  readonly databaseUrl: string;
  readonly crew: Crew;
  /** One line for each thing that was started. */
  readonly description: readonly string[];
  readonly startedInMs: number;
}

export async function openStage(given: Given = {}): Promise<Stage> {
  const startedAt = performance.now();
  if (given.gateway !== undefined) await reachGateway(given.gateway);
  if (given.redisUrls !== undefined) await reachNodes(given.redisUrls, given.namespace);
  const crew = new Crew();
  crew.prepare(2);
  const opened: AsyncDisposable[] = [crew];
  const own = <Thing extends AsyncDisposable>(thing: Thing): Thing => {
    opened.push(thing);
    return thing;
  };
  const close = async (): Promise<void> => {
    // The gateway before the servers that it would otherwise complain about.
    for (const thing of opened.splice(0).reverse()) await thing[Symbol.asyncDispose]();
  };
  try {
    const { redisUrls, databaseUrl, description } = own(await startServers(given));
    const namespace = given.namespace ?? "palisade";
    await prepareTable(databaseUrl);
    const gateway = given.gateway ?? own(await startGateway({ databaseUrl, redisUrls, namespace }));
    return {
      redisUrls,
      namespace,
      gateway,
      databaseUrl,
      crew,
      description: [...description, `${given.gateway === undefined ? "gateway, a process of its own" : "gateway, given"}: ${gateway.url}`],
      startedInMs: Math.round(performance.now() - startedAt),
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function prepareTable(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "palisade-demo" });
  await client.connect();
  try {
    await client.query(unguardedTable);
  } finally {
    await client.end();
  }
}
