// A connection for one command: opened, used, and ended.
import pg from "pg";
import { connectionFault } from "./connection-fault.js";
import { DatabaseHost } from "./database-host.js";

/**
 * A connection of its own for one command of the program. `timeoutMs`: for connecting and for each
 * answer; otherwise a server that is silent is waited for.
 */
export async function withClient<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>, timeoutMs?: number): Promise<T> {
  const connectionString = await new DatabaseHost(databaseUrl).url();
  const client = new pg.Client({
    connectionString,
    application_name: "palisade-migrate",
    connectionTimeoutMillis: timeoutMs ?? 0,
    query_timeout: timeoutMs,
  });
  client.on("error", () => {}); // A lost connection also rejects the statement that waits on it.
  await client.connect().catch((error: unknown) => {
    throw connectionFault(error, client);
  });
  try {
    return await work(client);
  } finally {
    const ended = client.end();
    if (timeoutMs === undefined) await ended;
  }
}

const MIGRATION_LOCK = 4_702_111_233; // Any number, as long as every version uses the same.

/**
 * One transaction for all of it, so that a database is never half-way between two versions. The
 * lock belongs to the transaction: a pooler may give the next one another connection.
 */
export async function underLock<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  // Read committed: a session that waited here continues with a new snapshot, and does not create
  // the same tables again.
  await client.query("begin isolation level read committed");
  try {
    await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch((second: unknown) => {
      throw new AggregateError([error, second], "the migration failed, and so did its rollback");
    });
    throw error;
  }
}
