#!/usr/bin/env node
// The program of `npx @palisade/guard`: puts the fences into a database, or prints the SQL that does.
// Exit codes: 0 done, 1 failed, 2 wrong arguments.
import { parseArgs } from "node:util";
import { grantRoles, migrate, schemaSql } from "./schema.js";
import { grants } from "./sql.generated.js";

const usage = `npx @palisade/guard COMMAND, for a database without a gateway. DATABASE_URL names it and its owner.

  migrate         put the fences into it, or bring them up to date; needs pg installed beside the guard
  grant [ROLE…]   make the roles palisade_app and palisade_gateway, and let each ROLE use the fences
  sql             print what migrate does to an empty database, for the tool of your own migrations
  sql --grants    print what grant does; then: grant palisade_app to ROLE`;

/** A call that is not understood. */
class UsageError extends Error {}

function databaseUrl(): string {
  const { DATABASE_URL: url = "" } = process.env;
  if (url !== "") return url;
  throw new UsageError("DATABASE_URL is missing: postgres://OWNER:PASSWORD@HOST/DATABASE");
}

async function main(args: readonly string[]): Promise<void> {
  const options = { grants: { type: "boolean" }, help: { type: "boolean", short: "h" } } as const;
  const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
  const [command, ...roles] = positionals;
  if (values.help === true || command === undefined) return console.log(usage);
  if (command !== "grant" && roles.length > 0) throw new UsageError(`${JSON.stringify(roles[0])} is not understood after ${command}`);
  if (command !== "sql" && values.grants === true) throw new UsageError("--grants belongs to sql");
  if (command === "sql") return void process.stdout.write(values.grants === true ? grants : schemaSql());
  if (command === "migrate") {
    const { applied } = await migrate(databaseUrl());
    return console.log(applied.length > 0 ? `The fences are there: ${applied.join(", ")}.` : "The fences are there, as they were before.");
  }
  if (command === "grant") {
    await grantRoles(databaseUrl(), ...roles);
    return console.log(
      roles.length > 0
        ? `May use the fences: ${roles.join(", ")}.`
        : "The roles are there; grant palisade_app to those that use the fences.",
    );
  }
  throw new UsageError(`there is no command ${JSON.stringify(command)}; there are migrate, grant and sql`);
}

await main(process.argv.slice(2)).catch((error: NodeJS.ErrnoException) => {
  console.error(`@palisade/guard: ${error.message}`);
  process.exitCode = error instanceof UsageError || error.code?.startsWith("ERR_PARSE_ARGS") === true ? 2 : 1;
});
