// What a story is told on: five Redis masters, Postgres, a gateway process and the worker processes; own ones, or given ones that run already.
// Decides nothing about what is told. Everything started here is gone when the stage is disposed of.
import { PostgresServer, RedisFleet } from "@palisade/testkit";
import pg from "pg";
import { Crew } from "./crew.js";
import { unguardedTable } from "./desk.js";
import { startGateway } from "./gateway-process.js";

/** What is there already. */
export interface Given {
  readonly redisUrls?: readonly string[] | undefined;
  readonly namespace?: string | undefined;
  readonly gateway?: GatewayAddress | undefined;
  readonly databaseUrl?: string | undefined;
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
    const [fleet, postgres] = await both(
      given.redisUrls === undefined ? RedisFleet.start({ nodes: 5, appendfsync: "always" }) : undefined,
      given.databaseUrl === undefined ? PostgresServer.start() : undefined,
    );
    for (const server of [fleet, postgres]) if (server !== undefined) own(server);
    const redisUrls = given.redisUrls ?? fleet?.urls ?? [];
    const databaseUrl = given.databaseUrl ?? postgres?.url ?? "";
    const namespace = given.namespace ?? "palisade";
    await prepareTable(databaseUrl);
    const gateway = given.gateway ?? own(await startGateway({ databaseUrl, redisUrls, namespace }));
    const description = [
      fleet?.description ?? `${redisUrls.length} × Redis, given: ${redisUrls.join(" ")}`,
      postgres?.description ?? "Postgres, given",
      `gateway ${given.gateway === undefined ? "process" : "given"}: ${gateway.url}`,
    ];
    const startedInMs = Math.round(performance.now() - startedAt);
    return { redisUrls, namespace, gateway, databaseUrl, crew, description, startedInMs, [Symbol.asyncDispose]: close };
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

/** If one cannot be had, the other is stopped before the reason is passed on. */
async function both<A extends AsyncDisposable, B extends AsyncDisposable>(
  first: Promise<A> | undefined,
  second: Promise<B> | undefined,
): Promise<readonly [A | undefined, B | undefined]> {
  const [a, b] = await Promise.allSettled([first, second]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  for (const one of [a, b]) if (one.status === "fulfilled") await one.value?.[Symbol.asyncDispose]();
  throw a.status === "rejected" ? a.reason : (b as PromiseRejectedResult).reason;
}
