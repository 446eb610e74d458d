// Gives the roles palisade_gateway and palisade_app their rights and no more. The SQL file beside this one is the whole of it, to be read and run by hand as well.
import { readFile } from "node:fs/promises";
import type pg from "pg";
import { underMigrationLock } from "./migrate.js";

const script = new URL("../../src/store/grants.sql", import.meta.url);

/** As the owner of the schema, after `migrate`; it may be called again at any time. */
export async function grantRoles(databaseUrl: string): Promise<void> {
  const text = await readFile(script, "utf8");
  await underMigrationLock(databaseUrl, (client: pg.Client) => client.query(text));
}
