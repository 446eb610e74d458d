// A real Postgres that a test can break; and a primary with the standby that streams from it, and a
// proxy between them that can break their link. A promotion leaves the primary running: whether two
// servers then accept writes is the test's choice.
import { setTimeout as sleep } from "node:timers/promises";
import { allStarted } from "../process/all-started.js";
import { FaultProxy } from "../proxy/fault-proxy.js";
import { chooseCitus, choosePostgres, type PostgresProviderName } from "../servers/choose.js";
import { PostgresDatabases, type PostgresHost, type PostgresProvider, queryAt, STANDBY_NAME, withClient } from "./databases.js";

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

export type PostgresServer = PostgresHost;
export const PostgresServer = {
  start: async ({ provider, durable = false, settings = {} }: PostgresOptions = {}): Promise<PostgresServer> => {
    const chosen = await choosePostgres(provider);
    return Object.assign(await chosen.provider.start({ durable, settings }), { description: chosen.origin });
  },
};

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

  static async start({ replication: how, durable = false, settings = {}, ...options }: PairOptions): Promise<PostgresPair> {
    const { provider, origin: description } = await choosePostgres(options.provider);
    const waitsFor = how === "sync" ? { synchronous_standby_names: STANDBY_NAME } : {};
    const primary = Object.assign(await provider.start({ durable, settings: { ...waitsFor, ...settings } }), { description });
    const replication = await FaultProxy.start({ upstream: primary });
    let standby: PostgresServer | undefined;
    try {
      standby = Object.assign(await provider.startStandby({ durable, settings }, replication), { description });
      const pair = new PostgresPair({ primary, standby, replication });
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
    const [written] = await queryAt(this.primary.url, "select pg_current_wal_lsn()::text as lsn");
    await until(
      this.standby.url,
      `select where pg_last_wal_replay_lsn() >= '${written?.lsn}'`,
      "the standby did not catch up with its primary",
    );
  }

  /** The standby becomes a primary that accepts writes; the former primary is not touched. */
  async promote(): Promise<void> {
    await queryAt(this.standby.url, "select pg_promote(wait => false)");
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

// A coordinator and workers with the extension Citus, as real servers that a test can break.
// A database of it is a database on every server, joined to the others; `url` itself is none.

export interface CitusOptions extends PostgresOptions {
  /** 2 when absent. */
  readonly workers?: number;
  /** "sync": each worker has a standby that its commits wait for. None when absent. */
  readonly standbys?: "sync";
  /** "proxied": the servers reach each worker through a proxy that can break. */
  readonly links?: "direct" | "proxied";
}

const settings: Readonly<Record<string, string>> = {
  shared_preload_libraries: "citus",
  // Shards are moved by logical replication.
  wal_level: "logical",
  // One for each database that is in use, and those of the moves.
  max_worker_processes: "100",
  max_connections: "300",
  // The servers trust each other, as they trust the tests. Otherwise Citus makes certificates.
  "citus.node_conninfo": "sslmode=disable",
  "citus.local_hostname": "127.0.0.1",
};

interface Worker {
  readonly server: PostgresServer;
  readonly pair?: PostgresPair;
  readonly link?: FaultProxy;
  stop(): Promise<unknown>;
}

export class CitusCluster extends PostgresDatabases implements AsyncDisposable {
  /** One line that says which Citus was chosen. */
  readonly description: string;
  readonly coordinator: PostgresServer;
  readonly #workers: readonly Worker[];

  private constructor(description: string, coordinator: PostgresServer, workers: readonly Worker[]) {
    const joined = workers.map(({ server: { url: adminUrl, host, port }, link = { host, port } }) => {
      return { adminUrl, address: { host: link.host, port: link.port } };
    });
    super(coordinator.url, joined);
    this.description = description;
    this.coordinator = coordinator;
    this.#workers = workers;
  }

  static async start(options: CitusOptions = {}): Promise<CitusCluster> {
    const { workers: count = 2 } = options;
    if (!Number.isInteger(count) || count < 0) throw new RangeError(`${count} workers: a cluster has a whole number of them`);
    const { provider, origin } = await chooseCitus(options.provider);
    const common = { ...options, provider, settings: { ...settings, ...options.settings } };
    const starts = Array.from({ length: count }, () => startWorker(common));
    const [coordinator, ...workers] = await allStarted<[PostgresServer, ...Worker[]]>([PostgresServer.start(common), ...starts]);
    return new CitusCluster(`${origin}, 1 coordinator and ${count} workers`, coordinator, workers);
  }

  get workers(): readonly PostgresServer[] {
    return this.#workers.map(({ server }) => server);
  }

  /** The workers with their standbys, in the order of `workers`; empty without standbys. */
  get pairs(): readonly PostgresPair[] {
    return this.#workers.flatMap(({ pair }) => pair ?? []);
  }

  /** The proxies before the workers, in their order; empty where links are direct. */
  get links(): readonly FaultProxy[] {
    return this.#workers.flatMap(({ link }) => link ?? []);
  }

  async stop(): Promise<void> {
    await Promise.all([this.coordinator.stop(), ...this.#workers.map((worker) => worker.stop())]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

async function startWorker(options: CitusOptions & { readonly provider: PostgresProvider }): Promise<Worker> {
  const { standbys, links, ...common } = options;
  const pair = standbys === undefined ? undefined : await PostgresPair.start({ ...common, replication: standbys });
  const server = pair?.primary ?? (await PostgresServer.start(common));
  const link = links === "proxied" ? await FaultProxy.start({ upstream: server }) : undefined;
  const stop = (): Promise<unknown> => Promise.all([pair?.stop() ?? server.stop(), link?.stop()]);
  return { server, stop, ...(pair && { pair }), ...(link && { link }) };
}
