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
