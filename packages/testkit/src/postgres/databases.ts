// Makes and drops databases on a server that runs somewhere, possibly for many test processes at
// once. It knows the server only by its URL, so that a worker can use a server that another process
// started.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Address } from "../proxy/fault-proxy.js";

/** A connection that ends with the scope in which it is declared. */
export async function connectTo(url: string, settings: pg.ClientConfig = {}): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url, application_name: "palisade-testkit", ...settings });
  // The waiting statement rejects as well; without a listener this would end the process.
  client.on("error", () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>, settings?: pg.ClientConfig): Promise<T> {
  await using client = await connectTo(url, settings);
  return await use(client);
}

/** The rows of one statement. */
export async function queryAt<Row extends pg.QueryResultRow = Record<string, unknown>>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return await withClient(url, async (client) => (await client.query<Row>(text, [...values])).rows);
}

export interface ClusterWorker {
  /** A database that is never dropped, as the superuser. */
  readonly adminUrl: string;
  /** Where the other servers find it: a proxy perhaps. */
  readonly address: Address;
}

/** The extension everywhere, and the workers joined to the coordinator. */
export async function joinCluster(coordinatorUrl: string, workers: readonly ClusterWorker[]): Promise<void> {
  const database = new URL(coordinatorUrl).pathname.slice(1);
  const urls = [coordinatorUrl, ...workers.map(({ adminUrl }) => urlWith(adminUrl, database))];
  await Promise.all(urls.map((url) => withClient(url, (client) => client.query("create extension citus"))));
  await withClient(coordinatorUrl, async (client) => {
    const { hostname, port } = new URL(coordinatorUrl);
    await client.query("select citus_set_coordinator_host($1, $2)", [hostname, Number(port)]);
    for (const { address } of workers) await client.query("select citus_add_node($1, $2)", [address.host, address.port]);
  });
}

export function urlWith(adminUrl: string, database: string): string {
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

export interface TestDatabase extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** Cuts the sessions that are still connected. */
  drop(): Promise<void>;
}

export interface DatabaseOptions {
  /** A template made before by `template(name, …)`; an empty database without it. */
  readonly from?: string;
  readonly name?: string;
}

const SETTLE_MS = 200;
const quoted = pg.escapeIdentifier;
const templateDatabase = (name: string): string => `template_${name}`;

/**
 * Postgres looks ten times a second whether a database is free to be copied, renamed or dropped;
 * the session of a client that has just left is gone much sooner.
 */
async function settled(admin: pg.Client, database: string): Promise<void> {
  const givenUpAt = performance.now() + SETTLE_MS;
  for (;;) {
    const { rowCount } = await admin.query("select from pg_stat_activity where datname = $1", [database]);
    // Postgres itself cuts a session that stays longer, or refuses.
    if (rowCount === 0 || performance.now() > givenUpAt) return;
    await sleep(1);
  }
}

function checkedName(name: string): string {
  if (!/^[A-Za-z0-9_-]{1,50}$/.test(name))
    throw new TypeError(`${JSON.stringify(name)} is no name for a database: 1 to 50 of A-Z a-z 0-9 _ -`);
  return name;
}

export class PostgresDatabases {
  readonly #adminUrl: string;
  readonly #workers: readonly ClusterWorker[];

  /**
   * `adminUrl` names a database that is never dropped, as the superuser. With workers, every
   * database is a Citus cluster: one of its name on each server, joined to that of `adminUrl`.
   */
  constructor(adminUrl: string, workers: readonly ClusterWorker[] = []) {
    this.#adminUrl = adminUrl;
    this.#workers = workers;
  }

  /** Empty, or a copy of a template, which takes some 20 ms however long the migrations took. */
  async createDatabase(options: DatabaseOptions | string = {}): Promise<TestDatabase> {
    const { name, from } = typeof options === "string" ? { name: options } : options;
    const database = checkedName(name ?? `db_${randomBytes(6).toString("hex")}`);
    const source = from === undefined ? "template0" : templateDatabase(checkedName(from));
    await this.#everywhere((admin) => admin.query(`create database ${quoted(database)} template ${quoted(source)}`));
    const drop = (): Promise<void> =>
      this.#everywhere(async (admin) => {
        await cut(admin, database);
        await admin.query(`drop database if exists ${quoted(database)} with (force)`);
      });
    if (from === undefined && this.#workers.length > 0) await joinCluster(this.urlOf(database), this.#workers);
    return { name: database, url: this.urlOf(database), drop, [Symbol.asyncDispose]: drop };
  }

  /**
   * Runs `migrate` on an empty database once per server, however many processes ask at the same
   * time; afterwards `createDatabase({ from: name })` copies it.
   */
  async template(name: string, migrate: (url: string) => Promise<unknown>): Promise<void> {
    const target = templateDatabase(checkedName(name));
    await withClient(this.#adminUrl, async (admin) => {
      // Held until this connection closes.
      await admin.query("select pg_advisory_lock(hashtextextended($1, 0))", [target]);
      const { rowCount } = await admin.query("select from pg_database where datname = $1", [target]);
      if (rowCount !== 0) return;
      const draft = await this.createDatabase();
      try {
        await migrate(draft.url);
        // Only a finished template ever carries the name, and it takes no connections, which would
        // keep it from being copied. The coordinator's last: it is the one that is looked for.
        for (const url of this.#adminUrls.toReversed()) await withClient(url, (server) => publish(server, draft.name, target));
      } catch (error) {
        await this.#everywhere((server) =>
          server.query(`alter database ${quoted(draft.name)} with is_template false`).catch(() => undefined),
        );
        await draft.drop();
        throw error;
      }
    });
  }

  get #adminUrls(): string[] {
    return [this.#adminUrl, ...this.#workers.map(({ adminUrl }) => adminUrl)];
  }

  urlOf(database: string): string {
    return urlWith(this.#adminUrl, database);
  }

  async #everywhere(work: (admin: pg.Client) => Promise<unknown>): Promise<void> {
    await Promise.all(this.#adminUrls.map((url) => withClient(url, work)));
  }
}

/** Those of Citus's own processes as well, which no client closes. */
async function cut(admin: pg.Client, database: string): Promise<void> {
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [database]);
  await settled(admin, database);
}

async function publish(server: pg.Client, draft: string, target: string): Promise<void> {
  await settled(server, draft);
  await server.query(`alter database ${quoted(draft)} with is_template true allow_connections false`);
  await cut(server, draft);
  await server.query(`alter database ${quoted(draft)} rename to ${quoted(target)}`);
}
