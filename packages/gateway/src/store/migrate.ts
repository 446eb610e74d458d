// Brings a database to the schema of this version: numbered SQL files, applied once each, in order,
// under a lock. A file that was applied is never edited or skipped. A file says which older
// gateways still run on the schema it makes, so that they stay ready while a newer version is
// rolled out.
import { createHash } from "node:crypto";
import type pg from "pg";
import { engineOf } from "./engine.js";
import { citusFunctions, grants, migrations } from "./migrations.generated.js";
import { underLock, withClient } from "./with-client.js";

interface Migration {
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
  /** Gateways that know the file with this number run on the schema that this one makes. */
  readonly runsWith: string | undefined;
}

interface Applied {
  readonly checksum: string;
  readonly runsWith: string | undefined;
}

/** What a database has that this version lacks, and the other way round. */
export interface SchemaState {
  /** Files that `migrate` would apply. */
  readonly pending: readonly string[];
  /** Files of a newer version, on whose schema this one runs. */
  readonly newer: readonly string[];
}

const RUNS_WITH = /^-- Runs with gateways from (\d{4}) on\.$/m;

/** The files that were applied, and how many were there already. */
export type MigrationReport = { readonly applied: readonly string[]; readonly alreadyThere: number };

/** The database cannot be brought up to date by this version. */
export class MigrationError extends Error {
  override readonly name = "MigrationError";
}

/**
 * Brings the schema `palisade` up to date. Safe to call from several processes at once. Throws
 * MigrationError when an applied file was changed, or the database is newer than this version and
 * says that this one does not run on it.
 */
export async function migrate(databaseUrl: string): Promise<MigrationReport> {
  const files = migrationFiles();
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
    if (missing(files, known).length === 0) return { applied: [], alreadyThere: files.length };
    return await underLock(client, () => applyTo(client, files)).catch((error: unknown) => {
      throw withoutRights(error, client, MIGRATE);
    });
  });
}

/**
 * Gives the roles palisade_gateway and palisade_app their rights. For the owner of the schema,
 * after `migrate`; may be repeated.
 */
export async function grantRoles(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, (client) => underLock(client, () => client.query(grants)));
}

/** Throws MigrationError where `migrate` would. */
export async function schemaState(client: Queryable): Promise<SchemaState> {
  const files = migrationFiles();
  const applied = await appliedTo(client);
  const known = new Set(files.map(({ name }) => name));
  return { pending: missing(files, applied).map(({ name }) => name), newer: [...applied.keys()].filter((name) => !known.has(name)) };
}

interface Queryable {
  query(text: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

function migrationFiles(): readonly Migration[] {
  return migrations.map(({ name, text }) => ({
    name,
    text,
    checksum: createHash("sha256").update(text).digest("hex"),
    runsWith: RUNS_WITH.exec(text)?.[1],
  }));
}

const MIGRATE =
  "Run `palisade-gateway migrate` with the DATABASE_URL of the database's owner, and set PALISADE_MIGRATIONS=off for gateways that run as another role";
const GRANT = "run `palisade-gateway grant` as the owner of the schema, and `grant palisade_gateway to ROLE`";
const INSUFFICIENT_PRIVILEGE = "42501";

/** An error that is about rights says which command helps. */
function withoutRights(error: unknown, { user = "" }: pg.Client, command: string): unknown {
  if (!(error instanceof Error) || (error as { readonly code?: string }).code !== INSUFFICIENT_PRIVILEGE) return error;
  const what = command === GRANT ? "read the schema palisade" : "bring the schema up to date";
  return new MigrationError(`the role ${user} may not ${what}: ${error.message}. ${command.replace("ROLE", user)}.`, { cause: error });
}

async function appliedTo(client: Queryable): Promise<ReadonlyMap<string, Applied>> {
  // The catalog itself is read: in a transaction that has waited, to_regclass may answer from
  // memory.
  const { rows } = await client.query("select from pg_catalog.pg_tables where schemaname = 'palisade' and tablename = 'migrations'");
  if (rows.length === 0) return new Map();
  // All columns: the table has no runs_with before the first file that came with one.
  const { rows: applied } = await client.query("select * from palisade.migrations order by name");
  return new Map(
    applied.map((row) => [
      String(row.name),
      { checksum: String(row.checksum), runsWith: typeof row.runs_with === "string" ? row.runs_with : undefined },
    ]),
  );
}

function missing(files: readonly Migration[], applied: ReadonlyMap<string, Applied>): readonly Migration[] {
  const known = new Map(files.map((file) => [file.name, file.checksum]));
  const newest = files.at(-1)?.name.slice(0, 4) ?? "";
  for (const [name, { checksum, runsWith }] of applied) {
    const expected = known.get(name);
    if (expected === undefined && runsWith !== undefined && runsWith <= newest) continue;
    if (expected === undefined)
      throw new MigrationError(`the database has ${name}, on whose schema this version does not run: it was migrated by a newer one`);
    if (expected !== checksum)
      throw new MigrationError(`${name} was changed after it was applied to this database (${checksum} then, ${expected} now)`);
  }
  const missingFiles = files.filter((file) => !applied.has(file.name));
  const [first] = missingFiles;
  const late = [...applied.keys()].find((name) => first !== undefined && name > first.name);
  if (late !== undefined) throw new MigrationError(`${first?.name} is missing although the later ${late} was applied`);
  return missingFiles;
}

async function applyTo(client: pg.Client, files: readonly Migration[]): Promise<MigrationReport> {
  const toApply = missing(files, await appliedTo(client)); // Another process may have migrated while this one waited for the lock.
  await client.query(`create schema if not exists palisade;
    create table if not exists palisade.migrations (name text primary key, checksum text not null, applied_at timestamptz not null default now());
    alter table palisade.migrations add column if not exists runs_with text`);
  for (const file of toApply) {
    await client.query(file.text);
    const values = [file.name, file.checksum, file.runsWith ?? null];
    await client.query("insert into palisade.migrations (name, checksum, runs_with) values ($1, $2, $3)", values);
  }
  // A file may have made anew what is another function on distributed tables.
  const engine = await engineOf(async (text) => (await client.query(text)).rows);
  if (toApply.length > 0 && engine.kind === "citus") await client.query(citusFunctions);
  return { applied: toApply.map((file) => file.name), alreadyThere: files.length - toApply.length };
}
