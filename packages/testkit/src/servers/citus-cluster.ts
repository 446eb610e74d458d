// A coordinator and workers with the extension Citus, as real servers that a test can break.
// A database of it is a database on every server, joined to the others; `url` itself is none.
import { PostgresDatabases, type PostgresProvider } from "../postgres/databases.js";
import { type PostgresOptions, PostgresPair, PostgresServer } from "../postgres/server.js";
import { allStarted } from "../process/all-started.js";
import { FaultProxy } from "../proxy/fault-proxy.js";
import { chooseCitus } from "./choose.js";

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
