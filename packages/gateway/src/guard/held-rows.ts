// Which rows of a statement that waited too long are held by other sessions. Asked on the failure
// path only: one statement, however many they are, so that the others need not be tried one by one.
import type { WriteConnection } from "../store/write-connection.js";
import { named } from "./fenced-statement.js";
import { arrayOf } from "./refusal.js";

// Takes the lock of a write on every free row, for the length of this statement. A row that is
// being created is not seen.
const HELD = named(
  "palisade-held",
  `
  with free as (
    select resource from palisade.resources where resource = any($1::text[]) for no key update skip locked
  )
  select resource from palisade.resources where resource = any($1::text[]) and resource not in (select resource from free)`,
);

/** Undefined when that cannot be found out. */
export async function heldRows(connection: WriteConnection, resources: readonly string[]): Promise<readonly string[] | undefined> {
  const reply = await connection.run({ ...HELD, values: [arrayOf(resources)] });
  return "rows" in reply ? reply.rows.map(([resource]) => String(resource)) : undefined;
}
