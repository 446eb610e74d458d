// The stores of a run of the whole system: a Postgres primary with its synchronous standby, three
// servers under Patroni, or a Citus cluster. Clients and gateways reach each by links that break.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import {
  CitusCluster,
  FaultProxy,
  gatewayProgram,
  PatroniCluster,
  Pgbouncer,
  PostgresPair,
  type PostgresServer,
  queryAt,
} from "@palisade/testkit";
import type pg from "pg";

export interface StoreLink {
  readonly url: string;
  readonly proxy: FaultProxy;
}

interface Address {
  readonly host: string;
  readonly port: number;
}

export abstract class SystemStore implements AsyncDisposable {
  protected readonly links: FaultProxy[] = [];
  abstract readonly description: string;
  /** Where it is now, past all links. */
  abstract get url(): string;
  protected abstract stop(): Promise<unknown>;

  /** One client's link to it. */
  async link(): Promise<StoreLink> {
    return await this.linkTo(this.address);
  }

  /** A gateway's, where that is another one. */
  async linkOfGateway(_index: number): Promise<StoreLink> {
    return await this.link();
  }

  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    return await queryAt<Row>(this.url, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.links.map((link) => link.stop()));
    await this.stop();
  }

  protected get address(): Address {
    const { hostname, port } = new URL(this.url);
    return { host: hostname, port: Number(port) };
  }

  protected async linkTo(upstream: Address): Promise<StoreLink> {
    const proxy = await FaultProxy.start({ upstream });
    this.links.push(proxy);
    return { url: proxy.urlOf(this.url), proxy };
  }
}

/** A primary and its synchronous standby, behind addresses that follow a failover. */
export class Store extends SystemStore {
  readonly #pair: PostgresPair;
  #failedOver = false;

  private constructor(pair: PostgresPair) {
    super();
    this.#pair = pair;
  }

  static async start(): Promise<Store> {
    return new Store(await PostgresPair.start({ replication: "sync", settings: { max_connections: "100" } }));
  }

  get description(): string {
    return `${this.#pair.primary.description}, a synchronous pair`;
  }

  /** The server that is the store now. */
  get server(): PostgresServer {
    return this.#failedOver ? this.#pair.standby : this.#pair.primary;
  }

  get url(): string {
    return this.server.url;
  }

  /** Between primary and standby; undefined after the failover. */
  get replication(): FaultProxy | undefined {
    return this.#failedOver ? undefined : this.#pair.replication;
  }

  /** The primary dies for good, with what only it knew; the standby is the store from now on. */
  async failOver(): Promise<void> {
    await Promise.all(this.links.map((link) => link.serverDown()));
    await this.#pair.primary.crash();
    await this.#pair.promote();
    this.#failedOver = true;
    await Promise.all(this.links.map((link) => link.serverUp(this.address)));
  }

  protected stop(): Promise<unknown> {
    return this.#pair.stop();
  }
}

const deployed = join(createRequire(import.meta.url).resolve("@palisade/robustness/package.json"), "..", "..", "..", "deploy", "ha");
/** In pgbouncer.ini these name machines; here all are one. */
const ofThisMachine = new Set(["listen_addr", "listen_port", "auth_type", "auth_file", "pool_mode"]);

/**
 * Three Postgres servers under Patroni behind HAProxy, started with the files of deploy/ha. The
 * second gateway reaches them through pgbouncer, which stands before HAProxy.
 */
export class PatroniStore extends SystemStore {
  readonly cluster: PatroniCluster;
  readonly #pooler: Pgbouncer;

  private constructor(cluster: PatroniCluster, pooler: Pgbouncer) {
    super();
    this.cluster = cluster;
    this.#pooler = pooler;
  }

  static async start(): Promise<PatroniStore> {
    const configuration = { patroni: join(deployed, "patroni.yml"), haproxy: join(deployed, "haproxy.cfg") };
    const cluster = await PatroniCluster.start({ configuration });
    try {
      const [, section = ""] = readFileSync(join(deployed, "pgbouncer.ini"), "utf8").split("[pgbouncer]");
      const lines = [...section.matchAll(/^([a-z_]+) *= *(.+)$/gm)].map(([, name = "", value = ""]) => [name, value] as const);
      const settings = Object.fromEntries(lines.filter(([name]) => !ofThisMachine.has(name)));
      return new PatroniStore(cluster, await Pgbouncer.start({ databaseUrl: cluster.url(), mode: "transaction", settings }));
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  get description(): string {
    return `3 × ${this.cluster.description}; pgbouncer ${this.#pooler.version}`;
  }

  get url(): string {
    return this.cluster.url();
  }

  override async linkOfGateway(index: number): Promise<StoreLink> {
    return await this.linkTo(index === 1 ? this.#pooler : this.address);
  }

  protected async stop(): Promise<void> {
    await this.#pooler.stop();
    await this.cluster.stop();
  }
}

/** A coordinator, which clients and gateways reach, and two workers. */
export class CitusStore extends SystemStore {
  readonly cluster: CitusCluster;
  readonly url: string;

  private constructor(cluster: CitusCluster, url: string) {
    super();
    this.cluster = cluster;
    this.url = url;
  }

  /** Migrated and distributed by the program, as an operator does it. */
  static async start(): Promise<CitusStore> {
    const cluster = await CitusCluster.start();
    try {
      const { url } = await cluster.createDatabase("palisade");
      await promisify(execFile)(process.execPath, [gatewayProgram, "migrate", "--citus"], { env: { ...process.env, DATABASE_URL: url } });
      return new CitusStore(cluster, url);
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  get description(): string {
    return this.cluster.description;
  }

  protected stop(): Promise<unknown> {
    return this.cluster.stop();
  }
}
