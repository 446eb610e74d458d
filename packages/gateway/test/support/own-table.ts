// Tables of a test's own under the fence, and transactions that present pairs of resource and
// token.
import type pg from "pg";
import { uniqueName } from "./store.js";

export type Pair = readonly [resource: string, token: number];

export async function inTransaction<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

/** The statements in one transaction, under these pairs. */
export async function writeUnder(client: pg.Client, pairs: readonly Pair[], ...texts: readonly string[]): Promise<void> {
  await inTransaction(client, async () => {
    for (const [resource, token] of pairs) await client.query("select palisade.present($1, $2)", [resource, token]);
    for (const text of texts) await client.query(text);
  });
}

/** A name that may stand in SQL without quotes. */
export function tableName(prefix: string): string {
  return uniqueName(prefix).replace(/\W/g, "_").toLowerCase();
}

export async function fencedTable(client: pg.Client, columns: string, ...key: readonly string[]): Promise<string> {
  const table = tableName("fenced");
  await client.query(`create table ${table} (${columns})`);
  await fence(client, table, key);
  return table;
}

/** A row of the table is the resource `<table>/<key>`. */
export async function fence(client: pg.Client, table: string, key: readonly string[]): Promise<void> {
  await client.query("select palisade.fence_table($1, $2, variadic $3)", [table, `${table}/`, key]);
}

export async function fenceOf(client: pg.Client, resource: string): Promise<number | null> {
  const { rows } = await client.query<{ token: string | null }>("select palisade.fence_of($1) as token", [resource]);
  const token = rows[0]?.token ?? null;
  return token === null ? null : Number(token);
}
