// Everything the soak puts under load: five Redis nodes that write every command to disk, Postgres, and the shipped gateway program, each a process of its own, with
// proxies between them and the clients. Retentions and intervals are shortened so that half an hour shows the level at which things stay.
import { fileURLToPath } from "node:url";
import { type Child, FaultProxy, PostgresServer, RedisFleet, startChild, type TestDatabase, takePort } from "@palisade/testkit";
import pg from "pg";
import type { SelfReading } from "./probe.js";

const program = fileURLToPath(new URL("../../../../gateway/dist/main.js", import.meta.url));
const probe = new URL("gateway-probe.js", import.meta.url).href;
const readyTimeoutMs = 60_000;
const patience = { connectionTimeoutMillis: 5_000, query_timeout: 5_000 };

const postgresSettings = {
  shared_buffers: "32MB",
  checkpoint_timeout: "1min",
  min_wal_size: "32MB",
  max_wal_size: "64MB",
  autovacuum_naptime: "5s",
};

type Closer = () => Promise<unknown>;

interface Parts {
  readonly fleet: RedisFleet;
  readonly postgres: PostgresServer;
  readonly database: TestDatabase;
  readonly gateway: GatewayProcess;
  readonly way: FaultProxy;
  readonly closers: readonly Closer[];
}

export interface GatewayProcess {
  readonly child: Child;
  readonly port: number;
  readonly adminUrl: string;
  /** What it last said of itself, and when. */
  readonly last: { self: SelfReading | undefined; at: number };
}

export class Stage implements AsyncDisposable {
  readonly fleet: RedisFleet;
  readonly postgres: PostgresServer;
  readonly database: TestDatabase;
  readonly gateway: GatewayProcess;
  /** Between the clients and the gateway. */
  readonly way: FaultProxy;
  readonly #closers: readonly Closer[];

  private constructor({ fleet, postgres, database, gateway, way, closers }: Parts) {
    this.#closers = closers;
    this.fleet = fleet;
    this.postgres = postgres;
    this.database = database;
    this.gateway = gateway;
    this.way = way;
  }

  static async open(namespace: string, readingEveryMs: number): Promise<Stage> {
    const closers: Closer[] = [];
    try {
      const fleet = await RedisFleet.start({ nodes: 5, appendfsync: "always", clock: "real" });
      closers.push(() => fleet.stop());
      const postgres = await PostgresServer.start({ durable: true, settings: postgresSettings });
      closers.push(() => postgres.stop());
      const database = await postgres.createDatabase();
      const gateway = await startGateway(gatewayEnvironment(database.url, fleet.urls, namespace), readingEveryMs);
      closers.push(() => gateway.child.stop());
      const way = await FaultProxy.start({ upstream: { host: "127.0.0.1", port: gateway.port } });
      closers.push(() => way.stop());
      await untilAnswers(gateway);
      return new Stage({ fleet, postgres, database, gateway, way, closers });
    } catch (error) {
      await closeAll(closers);
      throw error;
    }
  }

  get gatewayUrl(): string {
    return `http://${this.way.host}:${this.way.port}`;
  }

  get pids(): Readonly<Record<string, number | undefined>> {
    return { gateway: this.gateway.child.pid, ...Object.fromEntries(this.fleet.nodes.map(({ name, pid }) => [name, pid])) };
  }

  /** One statement on a connection of its own: it is never in the way of a disturbance. */
  async ask(statement: string, values: readonly unknown[] = []): Promise<Record<string, unknown>> {
    const client = new pg.Client({ connectionString: this.database.url, application_name: "soak", ...patience });
    client.on("error", () => {}); // The statement that waits for it is rejected as well.
    await client.connect();
    try {
      return (await client.query(statement, [...values])).rows[0] ?? {};
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await closeAll(this.#closers);
  }
}

/** The last opened first. */
async function closeAll(closers: readonly Closer[]): Promise<void> {
  for (const close of closers.toReversed()) await close();
}

function gatewayEnvironment(databaseUrl: string, redisUrls: readonly string[], namespace: string): Readonly<Record<string, string>> {
  return {
    DATABASE_URL: databaseUrl,
    PALISADE_REDIS_URLS: redisUrls.join(","),
    PALISADE_NAMESPACE: namespace,
    PALISADE_VERIFY: "closed",
    PALISADE_HISTORY: "on",
    PALISADE_IDEMPOTENCY_RETENTION_MS: "60000",
    PALISADE_LOG_LEVEL: "error",
  };
}

async function startGateway(env: Readonly<Record<string, string>>, readingEveryMs: number): Promise<GatewayProcess> {
  const [port, adminPort] = [await takePort(), await takePort()];
  const last: GatewayProcess["last"] = { self: undefined, at: 0 };
  const child = startChild({
    name: "the gateway",
    command: process.execPath,
    args: ["--import", probe, program],
    env: { ...env, PORT: String(port), ADMIN_PORT: String(adminPort), SOAK_READING_EVERY_MS: String(readingEveryMs) },
    onMessage: (word) => {
      last.self = (word as { readonly self: SelfReading }).self;
      last.at = performance.now();
    },
  });
  return { child, port, adminUrl: `http://127.0.0.1:${adminPort}`, last };
}

async function untilAnswers({ child, adminUrl }: GatewayProcess): Promise<void> {
  const givenUpAt = performance.now() + readyTimeoutMs;
  for (;;) {
    try {
      const answer = await fetch(`${adminUrl}/ready`);
      await answer.arrayBuffer();
      if (answer.ok) return;
    } catch (cause) {
      if (!child.alive || performance.now() > givenUpAt) throw new Error(child.howItEnded(), { cause });
    }
    if (performance.now() > givenUpAt) throw new Error(`the gateway is not ready after ${readyTimeoutMs} ms: ${child.howItEnded()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
