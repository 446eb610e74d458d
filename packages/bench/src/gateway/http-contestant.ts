// A server as a contestant: the load of one process on it, and what the round left in the log of
// Postgres.
import { fileURLToPath } from "node:url";
import { AskedChild } from "@palisade/testkit";
import pg from "pg";
import type { Contestant, Round } from "../measure/comparison.js";
import type { Column } from "../measure/results.js";
import type { Ask, Requests } from "./load-client.js";
import type { ServerGroup, Servers } from "./servers.js";

/** What all rows of servers share. */
export interface Bench {
  readonly servers: Servers;
  readonly client: AskedChild<Ask>;
  readonly log: PostgresLog;
}

export const walColumn: Column = { key: "walBytes", title: "bytes of WAL", digits: 1 };

export class PostgresLog {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async of(servers: Servers): Promise<PostgresLog> {
    const client = new pg.Client({ connectionString: servers.postgres.url });
    await client.connect();
    return new PostgresLog(client);
  }

  async bytes(): Promise<number> {
    const { rows } = await this.#client.query<{ bytes: string }>("select pg_current_wal_insert_lsn() - '0/0' as bytes");
    return Number(rows[0]?.bytes);
  }

  async version(): Promise<string> {
    const { rows } = await this.#client.query<{ server_version: string }>("show server_version");
    return rows[0]?.server_version ?? "unknown";
  }

  /** Done now, so that what Postgres writes to the log by itself is not counted. */
  async checkpoint(): Promise<void> {
    await this.#client.query("checkpoint");
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

export function startLoadClient(): AskedChild<Ask> {
  return new AskedChild<Ask>(fileURLToPath(new URL("load-client.js", import.meta.url)), { name: "the load on the servers" });
}

export interface HttpLoad {
  readonly connections: number;
  readonly requests: Requests;
  /** Beside that of the server. */
  readonly suffix?: string;
}

export function httpContestant(
  { servers, client, log }: Bench,
  group: ServerGroup,
  { connections, requests, suffix = "" }: HttpLoad,
): Contestant {
  return {
    name: `${group.name}${suffix}`,
    kind: group.kind,
    does: group.does,
    processes: { client: () => [client.pid], server: group.pids, postgres: () => servers.postgresPids() },
    async round(seconds) {
      const before = await log.bytes();
      const round = await client.ask<Round>({ urls: group.urls, connections, seconds, requests });
      return { ...round, figures: { walBytes: ((await log.bytes()) - before) / round.operations } };
    },
  };
}

/** Each request once, before anything is measured; for what a row reads or is refused by. */
export async function prepare({ client }: Bench, group: ServerGroup, { connections, requests }: HttpLoad): Promise<void> {
  await client.ask<Round>({ urls: group.urls.slice(0, 1), connections, seconds: 0, least: requests.each ?? 1, requests });
}
