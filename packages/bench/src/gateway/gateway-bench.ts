// The servers that are compared, on one Postgres, each with a database of its own: started when a row asks for them
// first, and kept until the end; and the load of one process on them.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { AskedChild, connectTo, gatewayProgram, livingChildren, PostgresServer, startNode, takePort } from "@palisade/testkit";
import type pg from "pg";
import type { Contestant, Round } from "../measure/comparison.js";
import { withChildren } from "../measure/cpu.js";
import type { Context } from "../measure/part.js";
import type { Column, Kind } from "../measure/results.js";
import type { Ask, Requests } from "./load-client.js";

/** Connections to Postgres that each of the compared has. */
const POOL_SIZE = "20";
const MAX_CONNECTIONS = 500;

interface Style {
  readonly name: string;
  readonly kind: Kind;
  readonly does: string;
  /** Of the hand-written server; undefined is the gateway. */
  readonly env?: Readonly<Record<string, string>>;
}

const oneUpsert = "one upsert for each request, no token";

const styles = {
  express: { name: "Express 5 + pg", kind: "peer", does: oneUpsert, env: { STYLE: "express" } },
  fastify: { name: "Fastify 5 + pg", kind: "peer", does: oneUpsert, env: { STYLE: "fastify" } },
  http: { name: "node:http + pg", kind: "peer", does: `${oneUpsert}; documents pass as text`, env: { STYLE: "http" } },
  batched: {
    name: "node:http + pg, batching",
    kind: "bound",
    does: "the requests that wait share one upsert, no token: the ceiling",
    env: { STYLE: "http", BATCHED: "yes" },
  },
  expressFenced: {
    name: "Express 5 + pg, fenced",
    kind: "peer",
    does: "one upsert for each request, which compares the token",
    env: { STYLE: "express", FENCED: "yes" },
  },
  batchedFenced: {
    name: "node:http + pg, batching, fenced",
    kind: "bound",
    does: "the requests that wait share one upsert, which compares the tokens",
    env: { STYLE: "http", BATCHED: "yes", FENCED: "yes" },
  },
  unnestFenced: {
    name: "node:http + pg, fenced unnest",
    kind: "peer",
    does: "one statement for the rows of a transaction, which compares the tokens and fails as a whole",
    env: { STYLE: "http", FENCED: "yes" },
  },
  palisade: { name: "@palisade/gateway", kind: "ours", does: "compares token, sequence and revision; many requests in one statement" },
  before: { name: "@palisade/gateway beside it", kind: "ours", does: "that of another checkout" },
} as const satisfies Readonly<Record<string, Style>>;

export type StyleKey = keyof typeof styles;

interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<unknown>;
}

/** In front of a database of its own. */
export interface ComparedServer extends Style, ServerProcess {
  readonly databaseUrl: string;
}

const READY_TIMEOUT_MS = 20_000;

/** A process of its own. It logs as in production and does not say that it listens: it is asked until it answers. */
export async function startServer(name: string, program: string, settings: Readonly<Record<string, string>>): Promise<ServerProcess> {
  const port = await takePort();
  const env = {
    PALISADE_API_KEYS: "none",
    ...settings,
    PORT: String(port),
    ADMIN_PORT: String(await takePort()),
    PALISADE_LOG_LEVEL: "warn",
  };
  const child = startNode(program, [], { name, env });
  const url = `http://127.0.0.1:${port}`;
  for (const giveUpAt = performance.now() + READY_TIMEOUT_MS; ; await sleep(20)) {
    const answer = await fetch(`${url}/openapi.json`).catch(() => undefined);
    await answer?.arrayBuffer();
    if (answer !== undefined) return { url, pid: child.pid, stop: () => child.stop() };
    if (!child.alive || performance.now() > giveUpAt) throw new Error(`${url} does not answer: ${child.howItEnded()}`);
  }
}

/** All processes of a Postgres of this machine. */
export function pidsOf({ port }: PostgresServer): readonly number[] {
  const postmaster = livingChildren().find(({ name }) => name === `postgres:${port}`);
  return postmaster === undefined ? [] : withChildren(postmaster.pid);
}

export const walColumn: Column = { key: "walBytes", title: "bytes of WAL", digits: 1 };

export interface HttpLoad {
  readonly connections: number;
  readonly requests: Requests;
  /** Beside that of the server. */
  readonly suffix?: string;
}

export class GatewayBench implements AsyncDisposable {
  readonly postgres: PostgresServer;
  readonly client = new AskedChild<Ask>(fileURLToPath(new URL("load-client.js", import.meta.url)), { name: "the load on the servers" });
  readonly #sql: pg.Client & AsyncDisposable;
  readonly #beside: string | undefined;
  readonly #servers = new Map<StyleKey, Promise<ComparedServer>>();

  private constructor(postgres: PostgresServer, sql: pg.Client & AsyncDisposable, beside: string | undefined) {
    this.postgres = postgres;
    this.#sql = sql;
    this.#beside = beside;
  }

  static async start({ beside, note }: Context): Promise<GatewayBench> {
    // Commits reach the disk, as they do in production.
    const postgres = await PostgresServer.start({
      provider: "local",
      durable: true,
      settings: { max_connections: String(MAX_CONNECTIONS) },
    });
    const sql = await connectTo(postgres.url);
    const { rows } = await sql.query<{ server_version: string }>("show server_version");
    note("postgres", rows[0]?.server_version ?? "unknown");
    return new GatewayBench(postgres, sql, beside);
  }

  /** Those with "before" where another checkout was given. */
  keys(wanted: readonly StyleKey[]): readonly StyleKey[] {
    return this.#beside === undefined ? wanted : wanted.flatMap((key): StyleKey[] => (key === "palisade" ? ["palisade", "before"] : [key]));
  }

  /** The same one for the same question. */
  server(key: StyleKey): Promise<ComparedServer> {
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const starting = this.open(key);
    this.#servers.set(key, starting);
    return starting;
  }

  /** One that the caller stops. */
  async open(key: StyleKey, more: Readonly<Record<string, string>> = {}): Promise<ComparedServer> {
    const { url: databaseUrl } = await this.postgres.createDatabase();
    const style: Style = styles[key];
    return { ...style, databaseUrl, ...(await this.#start(key, { ...more, DATABASE_URL: databaseUrl })) };
  }

  contestant(server: ComparedServer, { connections, requests, suffix = "" }: HttpLoad): Contestant {
    const { name, kind, does, url, pid } = server;
    return {
      name: `${name}${suffix}`,
      kind,
      does,
      processes: { client: () => [this.client.pid], server: () => [pid], postgres: () => pidsOf(this.postgres) },
      round: async (seconds) => {
        const before = await this.#walBytes();
        const round = await this.client.ask<Round>({ url, connections, seconds, requests });
        return { ...round, figures: { walBytes: ((await this.#walBytes()) - before) / round.operations } };
      },
    };
  }

  /** Each request once, before anything is measured; for what a row reads or is refused by. */
  async prepare({ url }: ComparedServer, { connections, requests }: HttpLoad): Promise<void> {
    await this.client.ask<Round>({ url, connections, seconds: 0, least: requests.each ?? 1, requests });
  }

  /** Done now, so that what Postgres writes to the log by itself is not counted. */
  async checkpoint(): Promise<void> {
    await this.#sql.query("checkpoint");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sql[Symbol.asyncDispose]();
    await this.client.kill();
    for (const server of this.#servers.values()) await (await server).stop();
    await this.postgres.stop();
  }

  async #walBytes(): Promise<number> {
    const { rows } = await this.#sql.query<{ bytes: string }>("select pg_current_wal_insert_lsn() - '0/0' as bytes");
    return Number(rows[0]?.bytes);
  }

  #start(key: StyleKey, more: Readonly<Record<string, string>>): Promise<ServerProcess> {
    const { name, env }: Style = styles[key];
    const isBefore = key === "before" && this.#beside !== undefined;
    const gateway = isBefore ? join(this.#beside, "packages", "gateway", "dist", "main.js") : gatewayProgram;
    const program = env === undefined ? gateway : fileURLToPath(new URL("plain-server.js", import.meta.url));
    const settings = { ...env, ...more, POOL_SIZE, PALISADE_POOL_SIZE: POOL_SIZE };
    const started = startServer(name, program, settings);
    // An older checkout wants no credentials unasked, and does not know the word for it.
    return isBefore ? started.catch(() => startServer(name, program, { ...settings, PALISADE_API_KEYS: "" })) : started;
  }
}
