// Connections of their own for a few statements; each is closed whatever happens.
import pg from "pg";

/** A connection that ends with the scope in which it is declared. */
export async function connectTo(url: string, settings: pg.ClientConfig = {}): Promise<pg.Client & AsyncDisposable> {
  const client = new pg.Client({ connectionString: url, application_name: "palisade-testkit", ...settings });
  // The waiting statement rejects as well; without a listener this would end the process.
  client.on("error", () => {});
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

export async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>, settings?: pg.ClientConfig): Promise<T> {
  await using client = await connectTo(url, settings);
  return await use(client);
}

/** The rows of one statement. */
export async function queryAt<Row extends pg.QueryResultRow = Record<string, unknown>>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  return await withClient(url, async (client) => (await client.query<Row>(text, [...values])).rows);
}
