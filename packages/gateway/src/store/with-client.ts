// A connection for one command: opened, used, and ended.
import pg from "pg";
import { connectionFault } from "./connection-fault.js";
import { DatabaseHost } from "./database-host.js";

/** A connection of its own for one command of the program. */
export async function withClient<T>(databaseUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const connectionString = await new DatabaseHost(databaseUrl).url();
  const client = new pg.Client({ connectionString, application_name: "palisade-migrate" });
  client.on("error", () => {}); // A lost connection also rejects the statement that waits on it.
  await client.connect().catch((error: unknown) => {
    throw connectionFault(error, client);
  });
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
