// What a Postgres server is to a test: databases on one side, which a URL is enough for, so that a test
// can use a server that another process has started; and faults on the other, which only whoever has
// started it can make.
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

/** A worker of a Citus cluster. */
export interface ClusterWorker {
  /** A database that is never dropped, as the superuser. */
  readonly adminUrl: string;
  /** Where the other servers find it: a proxy perhaps. */
  readonly address: Address;
}

function urlWith(adminUrl: string, database: string): string {
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

interface DatabaseOptions {
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
  /** A database that is never dropped, as the superuser. */
  readonly url: string;
  /** With workers, every database is a Citus cluster: one of its name on each server, joined to that of `url`. */
  readonly joined: readonly ClusterWorker[];

  constructor(url: string, joined: readonly ClusterWorker[] = []) {
    this.url = url;
    this.joined = joined;
  }

  /** Empty, or a copy of a template, which takes some 20 ms however long the migrations took. */
  async createDatabase({ name, from }: DatabaseOptions = {}): Promise<TestDatabase> {
    const database = checkedName(name ?? `db_${randomBytes(6).toString("hex")}`);
    const source = from === undefined ? "template0" : templateDatabase(checkedName(from));
    await this.#everywhere((admin) => admin.query(`create database ${quoted(database)} template ${quoted(source)}`));
    const drop = (): Promise<void> =>
      this.#everywhere(async (admin) => {
        await cut(admin, database);
        await admin.query(`drop database if exists ${quoted(database)} with (force)`);
      });
    const url = urlWith(this.url, database);
    if (from === undefined && this.joined.length > 0) await joinCluster(url, this.joined);
    return { name: database, url, drop, [Symbol.asyncDispose]: drop };
  }

  /**
   * Runs `migrate` on an empty database once per server, however many processes ask at the same
   * time; afterwards `createDatabase({ from: name })` copies it.
   */
  async template(name: string, migrate: (url: string) => Promise<unknown>): Promise<void> {
    const target = templateDatabase(checkedName(name));
    await withClient(this.url, async (admin) => {
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
    return [this.url, ...this.joined.map(({ adminUrl }) => adminUrl)];
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

/** The extension everywhere, and the workers joined to the coordinator. */
async function joinCluster(coordinatorUrl: string, workers: readonly ClusterWorker[]): Promise<void> {
  const database = new URL(coordinatorUrl).pathname.slice(1);
  const urls = [coordinatorUrl, ...workers.map(({ adminUrl }) => urlWith(adminUrl, database))];
  await Promise.all(urls.map((url) => withClient(url, (client) => client.query("create extension citus"))));
  await withClient(coordinatorUrl, async (client) => {
    const { hostname, port } = new URL(coordinatorUrl);
    await client.query("select citus_set_coordinator_host($1, $2)", [hostname, Number(port)]);
    for (const { address } of workers) await client.query("select citus_add_node($1, $2)", [address.host, address.port]);
  });
}

export interface HostOptions {
  /** Durable: commits are forced to the disk, which only a crash of the whole machine needs. */
  readonly durable: boolean;
  /** More settings of postgresql.conf, which win over the testkit's own. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where it must listen; any free port when absent. For local servers only. */
  readonly port?: number | undefined;
}

/** One server that can be broken on purpose. Its address stays the same through restarts. */
export abstract class PostgresHost extends PostgresDatabases implements Address, AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** One line that says which Postgres was chosen. */
  description = "";

  constructor({ host, port }: Address) {
    super(`postgres://${SUPERUSER}@${host}:${port}/postgres`);
    this.host = host;
    this.port = port;
  }

  /** SIGKILL to every process of the server in the same instant. Nothing is flushed, no client is told. */
  abstract crash(): Promise<void>;
  /** Starts it again with the same data; one that is running is shut down cleanly first. */
  abstract restart(): Promise<void>;
  /** Connections stay open and nothing answers, until `resume`. */
  abstract pause(): Promise<void>;
  abstract resume(): Promise<void>;
  /** Ends it and removes all it left. */
  abstract stop(): Promise<void>;

  /** Stops it, copies its data, and starts it again. */
  async backUp(): Promise<void> {
    throw new TypeError("only a local server has backups: start it with provider local");
  }

  /** Ends it as `crash` does, and starts it with that copy. */
  async restoreBackup(): Promise<void> {
    await this.backUp();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

export interface PostgresProvider {
  /** Which Postgres runs and where it comes from, in one line. Throws what would help. */
  describe(): Promise<string>;
  start(options: HostOptions): Promise<PostgresHost>;
  /**
   * A standby that streams from `upstream`, where a primary of this provider answers that has not
   * been written to since its start. It is ready for reads when this resolves, and introduces itself
   * as STANDBY_NAME.
   */
  startStandby(options: HostOptions, upstream: Address): Promise<PostgresHost>;
}

/** How a standby is called in the primary's `synchronous_standby_names`. */
export const STANDBY_NAME = "standby";
/** The superuser of every server. Servers trust every local connection and hold test data only. */
export const SUPERUSER = "postgres";
// Locale C: sorting and messages are the same on every machine, and messages can be recognised.
export const initdbArguments = `--username ${SUPERUSER} --auth trust --encoding UTF8 --locale C --no-sync --no-instructions`.split(" ");

/** The settings of a standby of this primary. */
export function followed({ host, port }: Address): Record<string, string> {
  return {
    primary_conninfo: `host=${host} port=${port} user=${SUPERUSER} application_name=${STANDBY_NAME}`,
    // How soon it looks for its primary again; the default of 5 s is for wide networks.
    wal_retrieve_retry_interval: "20ms",
  };
}

/** As lines of postgresql.conf: in a file, so that a test can change them with ALTER SYSTEM. */
export function settingsLines({ durable, settings }: HostOptions): string {
  // Only the flushes differ between durable and not; what a client sees of a commit is the same.
  const flushes = durable ? "on" : "off";
  const all = {
    fsync: flushes,
    full_page_writes: flushes,
    max_connections: "200",
    // In the data folder, and gone with it; the default leaves files in /dev/shm after a SIGKILL.
    dynamic_shared_memory_type: "mmap",
    // Readiness and failures of the server; errors of clients are the clients' business.
    log_min_messages: "log",
    log_checkpoints: "off",
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
  return `\n${lines.join("")}`;
}
