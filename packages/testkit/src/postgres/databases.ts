// Makes and drops databases on a server that runs somewhere, possibly for many test processes at
// once. It knows the server only by its URL, so that a worker can use a server that another process
// started.
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

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

/** One statement after another on a connection of its own, which is closed whatever happens. */
export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: "palisade-testkit" });
  // The waiting statement rejects as well; without a listener this would end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

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

  /** `adminUrl` names a database that is never dropped, as the superuser. */
  constructor(adminUrl: string) {
    this.#adminUrl = adminUrl;
  }

  /** Empty, or a copy of a template, which takes some 20 ms however long the migrations took. */
  async createDatabase(options: DatabaseOptions | string = {}): Promise<TestDatabase> {
    const { name, from } = typeof options === "string" ? { name: options } : options;
    const database = checkedName(name ?? `db_${randomBytes(6).toString("hex")}`);
    const source = from === undefined ? "template0" : templateDatabase(checkedName(from));
    await withClient(this.#adminUrl, (admin) => admin.query(`create database ${quoted(database)} template ${quoted(source)}`));
    const drop = async (): Promise<void> => {
      await withClient(this.#adminUrl, async (admin) => {
        await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [database]);
        await settled(admin, database);
        await admin.query(`drop database if exists ${quoted(database)} with (force)`);
      });
    };
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
        await settled(admin, draft.name);
        // Only a finished template ever carries the name, and it takes no connections, which would
        // keep it from being copied.
        await admin.query(`alter database ${quoted(draft.name)} with is_template true allow_connections false`);
        await admin.query(`alter database ${quoted(draft.name)} rename to ${quoted(target)}`);
      } catch (error) {
        await admin.query(`alter database ${quoted(draft.name)} with is_template false`);
        await draft.drop();
        throw error;
      }
    });
  }

  urlOf(database: string): string {
    const url = new URL(this.#adminUrl);
    url.pathname = `/${database}`;
    return url.href;
  }
}
