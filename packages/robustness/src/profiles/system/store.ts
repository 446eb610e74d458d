// Postgres under fire: a primary and its synchronous standby, behind addresses that follow whichever of them is the store. It decides how a failover goes; not when.
import { FaultProxy, PostgresPair, type PostgresServer } from "@palisade/testkit";
import pg from "pg";
import { bareTables } from "./bare-door.js";

export class StoreUnderFire implements AsyncDisposable {
  readonly #pair: PostgresPair;
  readonly #ways: FaultProxy[] = [];
  #failedOver = false;

  private constructor(pair: PostgresPair) {
    this.#pair = pair;
  }

  static async start(): Promise<StoreUnderFire> {
    return new StoreUnderFire(await PostgresPair.start({ replication: "sync", settings: { max_connections: "100" } }));
  }

  get description(): string {
    return this.#pair.primary.description;
  }

  /** The server that is the store now. */
  get server(): PostgresServer {
    return this.#failedOver ? this.#pair.standby : this.#pair.primary;
  }

  get failedOver(): boolean {
    return this.#failedOver;
  }

  /** Between primary and standby. */
  get replication(): FaultProxy {
    return this.#pair.replication;
  }

  /** A way of its own for whoever asks, as a URL and as a proxy to break. */
  async anotherWay(): Promise<{ readonly url: string; readonly way: FaultProxy }> {
    const way = await FaultProxy.start({ upstream: this.#upstream });
    this.#ways.push(way);
    const url = new URL(this.server.url);
    url.host = `${way.host}:${way.port}`;
    return { url: url.href, way };
  }

  /** For the run itself, past all proxies. */
  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.server.url });
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  async prepare(tables: string): Promise<void> {
    await this.query(tables);
    await this.query(bareTables);
  }

  /** The primary dies for good, with whatever only it knew; the standby is the store from now on. */
  async failOver(): Promise<void> {
    await Promise.all(this.#ways.map((way) => way.serverDown()));
    await this.#pair.primary.crash();
    await this.#pair.promote();
    this.#failedOver = true;
    await Promise.all(this.#ways.map((way) => way.serverUp(this.#upstream)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ways.map((way) => way.stop()));
    await this.#pair.stop();
  }

  get #upstream(): { readonly host: string; readonly port: number } {
    return { host: "127.0.0.1", port: this.server.port };
  }
}
