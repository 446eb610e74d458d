// A real Postgres that a test can break: databases on one side, faults on the other; and a primary
// with the standby that streams from it, and a proxy between them that can break their link. A
// promotion leaves the primary running: whether two servers then accept writes is the test's choice.
import { setTimeout as sleep } from "node:timers/promises";
import { FaultProxy } from "../proxy/fault-proxy.js";
import { choosePostgres, type PostgresProviderName } from "../servers/choose.js";
import { type DatabaseOptions, PostgresDatabases, type TestDatabase, withClient } from "./databases.js";
import { type PostgresHost, type PostgresProvider, STANDBY_NAME, SUPERUSER } from "./local.js";

export interface PostgresOptions {
  /** By default `PALISADE_TEST_PROVIDER`, else containers, else this machine. */
  readonly provider?: PostgresProviderName | PostgresProvider;
  /**
   * Whether the bytes of a commit are forced to a disk. `crash()` loses nothing that was
   * acknowledged either way, because the kernel has it; only the crash of a whole machine would. So
   * false, the default, is right for tests, and true for measurements.
   */
  readonly durable?: boolean;
  /** Extra server settings by name, for example `{ max_connections: "20" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export class PostgresServer implements AsyncDisposable {
  /** One line that says which Postgres was chosen. */
  readonly description: string;
  readonly #host: PostgresHost;
  readonly #databases: PostgresDatabases;

  constructor(host: PostgresHost, description: string) {
    this.#host = host;
    this.description = description;
    this.#databases = new PostgresDatabases(this.url);
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const { provider, origin } = await choosePostgres(options.provider);
    return new PostgresServer(await provider.start({ durable: options.durable ?? false, settings: options.settings ?? {} }), origin);
  }

  /** The database "postgres" as superuser; the same after every crash and restart. */
  get url(): string {
    return `postgres://${SUPERUSER}@${this.#host.host}:${this.#host.port}/postgres`;
  }

  get port(): number {
    return this.#host.port;
  }

  async createDatabase(options: DatabaseOptions | string = {}): Promise<TestDatabase> {
    return await this.#databases.createDatabase(options);
  }

  async template(name: string, migrate: (url: string) => Promise<unknown>): Promise<void> {
    await this.#databases.template(name, migrate);
  }

  /** SIGKILL to every process of the server in the same instant. */
  async crash(): Promise<void> {
    await this.#host.crash();
  }

  /** On the same port with the same data; shuts down cleanly first if it runs. */
  async restart(): Promise<void> {
    await this.#host.restart();
  }

  /** Stops it, copies its data, and starts it again. Of a server of this machine only. */
  async backUp(): Promise<void> {
    await this.#local("backUp");
  }

  /** Ends it as `crash` does, and starts it with the data of the last backup. */
  async restoreBackup(): Promise<void> {
    await this.#local("restoreBackup");
  }

  async #local(work: "backUp" | "restoreBackup"): Promise<void> {
    if (this.#host[work] === undefined) throw new TypeError("only a local server has backups: start it with provider local");
    await this.#host[work]();
  }

  /** Connections stay open and nothing answers, until `resume`. */
  async pause(): Promise<void> {
    await this.#host.pause();
  }

  async resume(): Promise<void> {
    await this.#host.resume();
  }

  async stop(): Promise<void> {
    await this.#host.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

const JOIN_TIMEOUT_MS = 60_000;
const POLL_MS = 3;

export interface PairOptions extends PostgresOptions {
  /** "sync": a commit is acknowledged when the standby has it. "async": it does not wait. */
  readonly replication: "sync" | "async";
}

export class PostgresPair implements AsyncDisposable {
  readonly primary: PostgresServer;
  /** Reads only, until `promote`. */
  readonly standby: PostgresServer;
  /** Between the two: `partition()`, `slow(ms)`, `heal()`. */
  readonly replication: FaultProxy;

  private constructor({ primary, standby, replication }: Pick<PostgresPair, "primary" | "standby" | "replication">) {
    this.primary = primary;
    this.standby = standby;
    this.replication = replication;
  }

  static async start(options: PairOptions): Promise<PostgresPair> {
    const { provider, origin } = await choosePostgres(options.provider);
    const common = { durable: options.durable ?? false, settings: options.settings ?? {} };
    const waitsFor = options.replication === "sync" ? { synchronous_standby_names: STANDBY_NAME } : {};
    const primary = await provider.start({ ...common, settings: { ...waitsFor, ...common.settings } });
    const replication = await FaultProxy.start({ upstream: primary });
    let standby: PostgresHost | undefined;
    try {
      standby = await provider.startStandby(common, { host: replication.host, port: replication.port });
      const pair = new PostgresPair({
        primary: new PostgresServer(primary, origin),
        standby: new PostgresServer(standby, origin),
        replication,
      });
      await pair.joined();
      return pair;
    } catch (error) {
      await Promise.all([primary.stop(), standby?.stop(), replication.stop()]);
      throw error;
    }
  }

  /** Waits until the standby streams; in a synchronous pair, until the primary counts on it. */
  async joined(): Promise<void> {
    await until(
      this.primary.url,
      `select from pg_stat_replication where state = 'streaming'
        and (sync_state = 'sync' or current_setting('synchronous_standby_names') = '')`,
      "the standby did not join its primary",
    );
  }

  /** Waits until the standby shows all that the primary has committed so far. */
  async caughtUp(): Promise<void> {
    const { rows } = await withClient(this.primary.url, (client) =>
      client.query<{ lsn: string }>("select pg_current_wal_lsn()::text as lsn"),
    );
    await until(
      this.standby.url,
      `select where pg_last_wal_replay_lsn() >= '${rows[0]?.lsn}'`,
      "the standby did not catch up with its primary",
    );
  }

  /** The standby becomes a primary that accepts writes; the former primary is not touched. */
  async promote(): Promise<void> {
    await withClient(this.standby.url, (client) => client.query("select pg_promote(wait => false)"));
    await until(this.standby.url, "select where not pg_is_in_recovery()", "the standby was not promoted");
  }

  async stop(): Promise<void> {
    await Promise.all([this.primary.stop(), this.standby.stop(), this.replication.stop()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** Until the query finds a row. */
async function until(url: string, holds: string, meaning: string): Promise<void> {
  await withClient(url, async (client) => {
    const givenUpAt = performance.now() + JOIN_TIMEOUT_MS;
    while ((await client.query(holds)).rowCount === 0) {
      if (performance.now() > givenUpAt) throw new Error(`${meaning} within ${JOIN_TIMEOUT_MS} ms`);
      await sleep(POLL_MS);
    }
  });
}
