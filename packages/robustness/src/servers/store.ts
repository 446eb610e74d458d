// Postgres, a primary and its synchronous standby, behind addresses that follow a failover.
import { FaultProxy, PostgresPair, type PostgresServer, queryAt } from "@palisade/testkit";
import type pg from "pg";
import type { StoreLink, SystemStore } from "./system-store.js";

export class Store implements SystemStore, AsyncDisposable {
  readonly #pair: PostgresPair;
  readonly #links: FaultProxy[] = [];
  #failedOver = false;

  private constructor(pair: PostgresPair) {
    this.#pair = pair;
  }

  static async start(): Promise<Store> {
    return new Store(await PostgresPair.start({ replication: "sync", settings: { max_connections: "100" } }));
  }

  get description(): string {
    return this.#pair.primary.description;
  }

  /** The server that is the store now. */
  get server(): PostgresServer {
    return this.#failedOver ? this.#pair.standby : this.#pair.primary;
  }

  /** Between primary and standby; undefined after the failover. */
  get replication(): FaultProxy | undefined {
    return this.#failedOver ? undefined : this.#pair.replication;
  }

  /** One client's link to it. */
  async link(): Promise<StoreLink> {
    const proxy = await FaultProxy.start({ upstream: this.#upstream });
    this.#links.push(proxy);
    const url = new URL(this.server.url);
    url.host = `${proxy.host}:${proxy.port}`;
    return { url: url.href, proxy };
  }

  /** For the harness, past all links. */
  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    return await queryAt<Row>(this.server.url, text);
  }

  /** The primary dies for good, with what only it knew; the standby is the store from now on. */
  async failOver(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.serverDown()));
    await this.#pair.primary.crash();
    await this.#pair.promote();
    this.#failedOver = true;
    await Promise.all(this.#links.map((link) => link.serverUp(this.#upstream)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map((link) => link.stop()));
    await this.#pair.stop();
  }

  get #upstream(): { readonly host: string; readonly port: number } {
    return { host: new URL(this.server.url).hostname, port: this.server.port };
  }
}
