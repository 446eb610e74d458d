// Brings a database to the schema of this version: numbered SQL files, applied once each, in order,
// under a lock. A file that was applied is never edited or skipped, and a gateway runs on the schema
// of its own version only.
import { createHash } from "node:crypto";
import type pg from "pg";
import { withClient } from "./database-url.js";
import { DISTRIBUTED_TABLES, EngineError, engineOf } from "./engine.js";
import { citusFunctions, citusTables, grants, migrations } from "./migrations.generated.js";

interface Migration {
  readonly name: string;
  readonly text: string;
  readonly checksum: string;
}

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

/** The files that `migrate` would apply. Throws MigrationError where it would. */
export async function pendingMigrations(client: Queryable): Promise<readonly string[]> {
  return missing(migrationFiles(), await appliedTo(client)).map(({ name }) => name);
}

interface Queryable {
  query(text: string): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
}

const MIGRATION_LOCK = 4_702_111_233; // Any number, as long as every version uses the same.

/**
 * One transaction for all of it, so that a database is never half-way between two versions. The
 * lock belongs to the transaction: a pooler may give the next one another connection.
 */
async function underLock<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
  // Read committed: a session that waited here continues with a new snapshot, and does not create
  // the same tables again.
  await client.query("begin isolation level read committed");
  try {
    await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
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

function migrationFiles(): readonly Migration[] {
  return migrations.map(({ name, text }) => ({
    name,
    text,
    checksum: createHash("sha256").update(text).digest("hex"),
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

async function appliedTo(client: Queryable): Promise<ReadonlyMap<string, string>> {
  // The catalog itself is read: in a transaction that has waited, to_regclass may answer from
  // memory.
  const { rows } = await client.query("select from pg_catalog.pg_tables where schemaname = 'palisade' and tablename = 'migrations'");
  if (rows.length === 0) return new Map();
  const { rows: applied } = await client.query("select name, checksum from palisade.migrations order by name");
  return new Map(applied.map(({ name, checksum }) => [String(name), String(checksum)]));
}

function missing(files: readonly Migration[], applied: ReadonlyMap<string, string>): readonly Migration[] {
  const known = new Map(files.map((file) => [file.name, file.checksum]));
  for (const [name, checksum] of applied) {
    const expected = known.get(name);
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
    create table if not exists palisade.migrations (name text primary key, checksum text not null, applied_at timestamptz not null default now())`);
  for (const file of toApply) {
    await client.query(file.text);
    await client.query("insert into palisade.migrations (name, checksum) values ($1, $2)", [file.name, file.checksum]);
  }
  // A file may have made anew what is another function on distributed tables.
  const engine = await engineOf(async (text) => (await client.query(text)).rows);
  if (toApply.length > 0 && engine.kind === "citus") await client.query(citusFunctions);
  return { applied: toApply.map((file) => file.name), alreadyThere: files.length - toApply.length };
}

// Refuses a database on which no gateway may start, before the first write: what is so, and what to
// do.

/** The versions of Citus that `npm run citus` has passed on. */
const TRIED_CITUS = ["13.2"];

/**
 * Throws EngineError, or what the connection failed with. `timeoutMs`: for the connection and for
 * each answer.
 */
export async function demandFitDatabase(databaseUrl: string, timeoutMs?: number): Promise<void> {
  const look = async (client: pg.Client): Promise<void> => {
    const { rows } = await client.query<{ standby: boolean }>("select pg_catalog.pg_is_in_recovery() as standby");
    if (rows[0]?.standby === true)
      throw passing(
        `${client.host}:${client.port} is a standby, which takes no writes: DATABASE_URL must name the primary, or an address that leads to it`,
      );
    const engine = await engineOf(async (text) => (await client.query<Record<string, unknown>>(text)).rows);
    if (engine.kind === "plain") return;
    const release = engine.version.replace(/-.*/, "");
    if (!TRIED_CITUS.includes(release))
      throw new EngineError(
        `the tables are distributed by Citus ${release}, with which this version was never tried: use ${TRIED_CITUS.join(" or ")} (docs/citus.md)`,
      );
  };
  await withClient(databaseUrl, look, timeoutMs);
}

/** With the code of a server that cannot write: it passes when a standby is promoted. */
function passing(message: string): EngineError {
  return Object.assign(new EngineError(message), { code: "25006" });
}

// Distributes the tables of a migrated database over the workers of Citus: what
// `palisade-gateway migrate --citus` does after the migrations. A database that holds documents is
// moved with them, while no gateway writes.

/** As Citus has it. */
export const MOST_SHARDS = 64_000;

interface DistributeOptions {
  /** How many shards a table gets, in place of citus.shard_count of the database. */
  readonly shards?: number | undefined;
}

/** Whether the tables were plain before. */
type DistributeReport = { readonly distributed: boolean; readonly shards: number; readonly workers: number };

/** Throws EngineError or MigrationError where the database is not ready; then nothing changes. */
export async function distribute(databaseUrl: string, { shards }: DistributeOptions = {}): Promise<DistributeReport> {
  if (shards !== undefined && (!Number.isInteger(shards) || shards < 1 || shards > MOST_SHARDS))
    throw new RangeError(`shards is an integer from 1 to ${MOST_SHARDS}, not ${String(shards)}`);
  return await withClient(databaseUrl, async (client) => {
    const report = await underLock(client, () => distributeWith(client, shards));
    // Sessions from before have the statements of a plain database prepared.
    if (report.distributed) await client.query(END_OTHERS).catch(() => undefined);
    return report;
  });
}

const END_OTHERS = `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
  where datname = pg_catalog.current_database() and application_name like 'palisade-gateway%' and pid <> pg_catalog.pg_backend_pid()`;

async function distributeWith(client: pg.Client, shards: number | undefined): Promise<DistributeReport> {
  const query = async (text: string): Promise<readonly Record<string, unknown>[]> =>
    (await client.query<Record<string, unknown>>(text)).rows;
  const [citus] = await query("select from pg_catalog.pg_extension where extname = 'citus'");
  if (citus === undefined)
    throw new EngineError(
      "the extension citus is not in this database: run create extension citus on all servers, and add the workers by citus_add_node",
    );
  const pending = await pendingMigrations(client);
  if (pending.length > 0)
    throw new MigrationError(`the schema is not up to date: ${pending.join(", ")}; run palisade-gateway migrate first`);
  const before = await engineOf(query);
  if (before.kind === "plain") {
    await refuseWhatWouldBeLost(query);
    if (shards !== undefined) await client.query("select pg_catalog.set_config('citus.shard_count', $1, true)", [String(shards)]);
    await client.query(citusTables);
  }
  await client.query(citusFunctions);
  const after = await engineOf(query);
  if (after.kind !== "citus") throw new Error(`invariant: ${DISTRIBUTED_TABLES.join(", ")} are distributed`);
  return { distributed: before.kind === "plain", shards: after.shards.count, workers: after.shards.workers.length };
}

async function refuseWhatWouldBeLost(query: (text: string) => Promise<readonly Record<string, unknown>[]>): Promise<void> {
  const [found = {}] = await query(`
    select (select fence_floor > 0 from palisade.lineage) as recovered,
      (select count(*)::integer from pg_catalog.pg_dist_node where isactive and noderole = 'primary' and shouldhaveshards) as workers`);
  if (Number(found.workers) === 0)
    throw new EngineError("this coordinator of Citus has no active worker that may keep shards: add one by citus_add_node");
  if (found.recovered === true)
    throw new EngineError(
      "this database was recovered after a restore, and its floor for new resources is kept by a row trigger, which Citus has not: it cannot be distributed",
    );
}
