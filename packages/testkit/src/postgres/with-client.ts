// A connection for a few statements.
import pg from "pg";

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
