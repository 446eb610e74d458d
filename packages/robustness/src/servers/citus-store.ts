// A Citus cluster of one coordinator and two workers; clients and gateways reach the coordinator.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { CitusCluster, FaultProxy, queryAt } from "@palisade/testkit";
import type pg from "pg";
import { gatewayProgram } from "./gateway.js";
import type { StoreLink, SystemStore } from "./system-store.js";

export class CitusStore implements SystemStore, AsyncDisposable {
  readonly cluster: CitusCluster;
  readonly #url: string;
  readonly #links: FaultProxy[] = [];

  private constructor(cluster: CitusCluster, url: string) {
    this.cluster = cluster;
    this.#url = url;
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

  async link(): Promise<StoreLink> {
    const { hostname, port } = new URL(this.#url);
    const proxy = await FaultProxy.start({ upstream: { host: hostname, port: Number(port) } });
    this.#links.push(proxy);
    return { url: proxy.urlOf(this.#url), proxy };
  }

  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    return await queryAt<Row>(this.#url, text);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map((link) => link.stop()));
    await this.cluster.stop();
  }
}
