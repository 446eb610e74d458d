// Which tables of the user are fenced and how, and taking the fence from one.
import { checkText } from "./checks.js";
import { execute, literal, type OpenTransaction, readRows } from "./statement.js";

/** A table whose rows are written only under the pairs of their resources. */
export interface FencedTable {
  /** As Postgres writes it in this session: with its schema, where the search path needs it. */
  readonly table: string;
  /** What the names of its resources begin with. */
  readonly prefix: string;
  /** The columns that complete the name of a row's resource. */
  readonly keyColumns: readonly string[];
  /** False after `alter table … disable trigger`: every write passes. */
  readonly enabled: boolean;
}

const FENCED_TABLES = `
  select relation::text as table, prefix, to_json(key_columns)::text as columns, enabled from palisade.fenced_tables order by 1`;

/**
 * The fenced tables. `db` is a client, a pool or an open transaction of any library that the guard
 * takes.
 */
export async function fencedTables(db: OpenTransaction): Promise<readonly FencedTable[]> {
  const rows = await readRows<Omit<FencedTable, "keyColumns"> & { readonly columns: string }>(db, FENCED_TABLES);
  return rows.map(({ columns, ...table }) => ({ ...table, keyColumns: JSON.parse(columns) as string[] }));
}

/**
 * Takes the fence from a table; the owner may. From then on every write passes. The fences of its
 * resources stay, and hold again when the table is fenced again.
 */
export async function unfence(db: OpenTransaction, table: string): Promise<void> {
  checkText({ text: table, what: "the name of a table", maxBytes: 512 });
  await execute(db, `select palisade.unfence_table(${literal(table)})::text`);
}
