// Three Postgres servers under Patroni behind HAProxy, started with the files of deploy/ha. The
// second gateway reaches them through pgbouncer, which stands before HAProxy.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { FaultProxy, PatroniCluster, Pgbouncer, queryAt } from "@palisade/testkit";
import pg from "pg";
import { nowMs, waited } from "../history/records.js";
import type { StoreLink, SystemStore } from "./system-store.js";

const folder = join(createRequire(import.meta.url).resolve("@palisade/robustness/package.json"), "..", "..", "..", "deploy", "ha");
const WATCH_EVERY_MS = 200;
/** In the file these name machines; here all are one. */
const ofThisMachine = new Set(["listen_addr", "listen_port", "auth_type", "auth_file", "pool_mode"]);

export class PatroniStore implements SystemStore, AsyncDisposable {
  readonly cluster: PatroniCluster;
  readonly description: string;
  readonly #pooler: Pgbouncer;
  readonly #links: FaultProxy[] = [];

  private constructor(cluster: PatroniCluster, pooler: Pgbouncer) {
    this.cluster = cluster;
    this.#pooler = pooler;
    this.description = `3 × ${cluster.description}; pgbouncer ${pooler.version}`;
  }

  static async start(): Promise<PatroniStore> {
    const configuration = { patroni: join(folder, "patroni.yml"), haproxy: join(folder, "haproxy.cfg") };
    const cluster = await PatroniCluster.start({ configuration });
    try {
      const pooler = await Pgbouncer.start({ databaseUrl: cluster.url(), mode: "transaction", settings: poolerSettings() });
      return new PatroniStore(cluster, pooler);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  async link(): Promise<StoreLink> {
    return await this.#linkTo(this.cluster);
  }

  async linkOfGateway(index: number): Promise<StoreLink> {
    return await this.#linkTo(index === 1 ? this.#pooler : this.cluster);
  }

  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    return await queryAt<Row>(this.cluster.url(), text);
  }

  /** Writes past all gateways until the signal, and notes when each write was stored. */
  async watch(stored: number[], over: AbortSignal): Promise<void> {
    await this.query("create table if not exists harness_writes (at timestamptz default now())");
    while (await waited(WATCH_EVERY_MS, over)) if (await storesOne(this.cluster.url())) stored.push(nowMs());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map((link) => link.stop()));
    await this.#pooler.stop();
    await this.cluster.stop();
  }

  async #linkTo(upstream: { readonly host: string; readonly port: number }): Promise<StoreLink> {
    const proxy = await FaultProxy.start({ upstream });
    this.#links.push(proxy);
    return { url: this.cluster.url(proxy.port), proxy };
  }
}

async function storesOne(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 500, query_timeout: 1_000 });
  client.on("error", () => {}); // The statement that waits on it rejects.
  try {
    await client.connect();
    await client.query("insert into harness_writes default values");
    return true;
  } catch {
    return false;
  } finally {
    // A server that is gone would not hear a farewell.
    (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream.destroy();
  }
}

/** Of pgbouncer.ini; its addresses and its users are the testkit's. */
function poolerSettings(): Record<string, string> {
  const [, section = ""] = readFileSync(join(folder, "pgbouncer.ini"), "utf8").split("[pgbouncer]");
  const lines = [...section.matchAll(/^([a-z_]+) *= *(.+)$/gm)].map(([, name = "", value = ""]) => [name, value] as const);
  return Object.fromEntries(lines.filter(([name]) => !ofThisMachine.has(name)));
}
