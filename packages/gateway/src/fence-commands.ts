// The commands about the user's own tables: what is fenced, taking a fence away, and every way
// around them.
import { fencedTables, inspectFences, unfence } from "@palisade/guard";
import { noArguments, read } from "./commands.js";
import { GatewayConfigError } from "./settings/config.js";
import { withClient } from "./store/with-client.js";

export async function fences(args: readonly string[]): Promise<number> {
  noArguments(args);
  const tables = await withClient(read().settings.databaseUrl, fencedTables);
  for (const { table, prefix, keyColumns, enabled } of tables)
    console.log(`${table}: ${prefix}{${keyColumns.join("}/{")}}${enabled ? "" : "; its trigger is disabled"}`);
  if (tables.length === 0) console.log("No table is fenced.");
  return 0;
}

export async function unfenceTable(args: readonly string[]): Promise<number> {
  const [table, ...rest] = args;
  if (table === undefined || table === "") throw new GatewayConfigError(["unfence needs the name of a table."]);
  noArguments(rest);
  await withClient(read().settings.databaseUrl, (client) => unfence(client, table));
  console.log(`${table} is not fenced any more: every write to it passes. The fences of its resources stay.`);
  return 0;
}

/** Exit code 1 when writes pass a fence now, as with a check that fails. */
export async function doctor(args: readonly string[]): Promise<number> {
  noArguments(args);
  const findings = await withClient(read().settings.databaseUrl, inspectFences);
  for (const { kind, way, table, detail } of findings) console.log(`${kind.padEnd(10)}  ${table ?? "every table"}: ${detail} (${way})`);
  const open = findings.filter(({ kind }) => kind === "open").length;
  console.log(open === 0 ? "No way around the fences is open." : `${open} ${open === 1 ? "way" : "ways"} around the fences open.`);
  return open === 0 ? 0 : 1;
}
