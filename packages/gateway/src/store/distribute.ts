// What a gateway demands of its database beside the schema, which @palisade/guard brings: Postgres
// that takes writes, or Citus of a release that was tried, and the tables spread over its workers.
import { citusFunctions, citusTables, underLock, withClient } from "@palisade/guard/gateway";
import { MigrationError, pendingMigrations } from "@palisade/guard/schema";
import type pg from "pg";
import { DISTRIBUTED_TABLES, EngineError, engineOf } from "./engine.js";

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
// `npx @palisade/gateway migrate --citus` does after the migrations. A database that holds documents is
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
    throw new MigrationError(`the schema is not up to date: ${pending.join(", ")}; run npx @palisade/gateway migrate first`);
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
