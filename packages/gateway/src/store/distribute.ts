// Distributes the tables of a migrated database over the workers of Citus: what
// `palisade-gateway migrate --citus` does after the migrations. A database that holds documents is
// moved with them, while no gateway writes.
import type pg from "pg";
import { DISTRIBUTED_TABLES, EngineError, engineOf } from "./engine.js";
import { MigrationError, schemaState } from "./migrate.js";
import { citusFunctions, citusTables } from "./migrations.generated.js";
import { underLock, withClient } from "./with-client.js";

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
  const { pending } = await schemaState(client);
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
