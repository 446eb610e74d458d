// Brings a database to the schema of this version: numbered SQL files, applied once each, in order,
// under a lock. A file that was applied is never edited or skipped, and a gateway runs on the schema
// of its own version only. The guard and the gateway need the same schema, and it stands here: who
// uses the guard alone needs no gateway for it.
import type pg from "pg";
import { withClient } from "./database-url.js";
import { INSTALL } from "./guard.js";
import { serverErrorOf } from "./server-error.js";
import { citusFunctions, grants, migrations } from "./sql.generated.js";

/** The files that were applied, and how many were there already. */
export type MigrationReport = { readonly applied: readonly string[]; readonly alreadyThere: number };

/** The database cannot be brought up to date by this version. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/**
 * Brings the schema `palisade` up to date. Safe to call from several processes at once. Throws
 * MigrationError when an applied file was changed, or the database is newer than this version.
 */
export async function migrate(databaseUrl: string): Promise<MigrationReport> {
  return await withClient(databaseUrl, async (client) => {
    const { rows } = await client.query("select current_setting('server_encoding') as encoding");
    if (rows[0]?.encoding !== "UTF8")
      throw new MigrationError(
        `the database has the encoding ${rows[0]?.encoding}: names and documents need UTF8, so create one with that`,
      );
    // A role without the right to create anything can still start a gateway on a database that is
    // up to date.
    const known = await appliedTo(client).catch((error: unknown) => {
      throw withoutRights(error, client, GRANT);
    });
    if (missing(known).length === 0) return { applied: [], alreadyThere: migrations.length };
    return await underLock(client, () => applyTo(client)).catch((error: unknown) => {
      throw withoutRights(error, client, MIGRATE);
    });
  });
}

/**
 * Gives the roles palisade_gateway and palisade_app their rights, and the latter to `appRoles`. For
 * the owner of the schema, after `migrate`; may be repeated.
 */
export async function grantRoles(databaseUrl: string, ...appRoles: readonly string[]): Promise<void> {
  await withClient(databaseUrl, async (client) => {
    const memberships = appRoles.map((role) => `grant palisade_app to ${client.escapeIdentifier(role)};`);
    await underLock(client, () => client.query(grants + memberships.join("\n"))).catch((error: unknown) => {
      throw serverErrorOf(error)?.code === NO_SCHEMA
        ? new MigrationError(`this database has no fences: ${INSTALL}`, { cause: error })
        : error;
    });
  });
}

/** What `migrate` does to an empty database, for the tool that runs the application's own migrations. */
export function schemaSql(): string {
  return MIGRATIONS_TABLE + migrations.map(applied).join("");
}

/** The files that `migrate` would apply. Throws MigrationError where it would. @internal */
export async function pendingMigrations(client: Queryable): Promise<readonly string[]> {
  return missing(await appliedTo(client)).map(({ name }) => name);
}

interface Queryable {
  query(text: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

const MIGRATION_LOCK = 4_702_111_233; // Any number, as long as every version uses the same.

/**
 * One transaction for all of it, so that a database is never half-way between two versions. The
 * lock belongs to the transaction: a pooler may give the next one another connection. @internal
 */
export async function underLock<T>(client: Queryable, work: () => Promise<T>): Promise<T> {
  // Read committed: a session that waited here continues with a new snapshot, and does not create
  // the same tables again.
  await client.query("begin isolation level read committed");
  try {
    await client.query(`select pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    await client.query("rollback").catch((second: unknown) => {
      throw new AggregateError([error, second], "the migration failed, and so did its rollback");
    });
    throw error;
  }
}

const MIGRATE =
  "Run `npx @palisade/guard migrate` or `npx @palisade/gateway migrate` with the DATABASE_URL of the database's owner, and set PALISADE_MIGRATIONS=off for gateways that run as another role";
const GRANT = "run `npx @palisade/gateway grant` as the owner of the schema, and `grant palisade_gateway to ROLE`";
const NO_SCHEMA = "3F000";
const INSUFFICIENT_PRIVILEGE = "42501";

/** An error that is about rights says which command helps. */
function withoutRights(error: unknown, { user = "" }: pg.Client, command: string): unknown {
  if (!(error instanceof Error) || serverErrorOf(error)?.code !== INSUFFICIENT_PRIVILEGE) return error;
  const what = command === GRANT ? "read the schema palisade" : "bring the schema up to date";
  return new MigrationError(`the role ${user} may not ${what}: ${error.message}. ${command.replace("ROLE", user)}.`, { cause: error });
}

async function appliedTo(client: Queryable): Promise<ReadonlyMap<string, string>> {
  // The catalog itself is read: in a transaction that has waited, to_regclass may answer from
  // memory.
  const { rows } = await client.query("select from pg_catalog.pg_tables where schemaname = 'palisade' and tablename = 'migrations'");
  if (rows.length === 0) return new Map();
  const { rows: applied } = await client.query("select name, checksum from palisade.migrations order by name");
  return new Map(applied.map(({ name, checksum }) => [String(name), String(checksum)]));
}

function missing(applied: ReadonlyMap<string, string>): typeof migrations {
  const known = new Map(migrations.map((file) => [file.name, file.checksum]));
  for (const [name, checksum] of applied) {
    const expected = known.get(name);
    if (expected === undefined)
      throw new MigrationError(`the database has ${name}, on whose schema this version does not run: it was migrated by a newer one`);
    if (expected !== checksum)
      throw new MigrationError(`${name} was changed after it was applied to this database (${checksum} then, ${expected} now)`);
  }
  const missingFiles = migrations.filter((file) => !applied.has(file.name));
  const [first] = missingFiles;
  const late = [...applied.keys()].find((name) => first !== undefined && name > first.name);
  if (late !== undefined) throw new MigrationError(`${first?.name} is missing although the later ${late} was applied`);
  return missingFiles;
}

const MIGRATIONS_TABLE = `create schema if not exists palisade;
create table if not exists palisade.migrations (name text primary key, checksum text not null, applied_at timestamptz not null default now());
`;

async function applyTo(client: Queryable): Promise<MigrationReport> {
  const toApply = missing(await appliedTo(client)); // Another process may have migrated while this one waited for the lock.
  await client.query(MIGRATIONS_TABLE);
  for (const file of toApply) await client.query(applied(file));
  // A file may have made anew what is another function on distributed tables.
  if (toApply.length > 0 && (await isDistributed(client))) await client.query(citusFunctions);
  return { applied: toApply.map((file) => file.name), alreadyThere: migrations.length - toApply.length };
}

/** A file, and the record that it was applied. */
function applied({ name, checksum, text }: (typeof migrations)[number]): string {
  return `${text}insert into palisade.migrations (name, checksum) values ('${name}', '${checksum}');\n`;
}

async function isDistributed(client: Queryable): Promise<boolean> {
  const { rows: extension } = await client.query("select from pg_catalog.pg_extension where extname = 'citus'");
  if (extension.length === 0) return false;
  const { rows } = await client.query(
    "select from pg_catalog.pg_dist_partition where logicalrelid = pg_catalog.to_regclass('palisade.resources')",
  );
  return rows.length > 0;
}
