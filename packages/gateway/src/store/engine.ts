// On what the tables stand: plain Postgres, or shards of Citus on several workers. The database
// says it, and nothing else does: the extension may be there without a distributed table.
import { type Shard, Shards } from "./shards.js";

export type Engine =
  | { readonly kind: "plain" }
  | {
      readonly kind: "citus";
      readonly version: string;
      /** Which worker keeps which names. */
      readonly shards: Shards;
    };

/** Distributed by the name of a resource; all other tables stay on the coordinator. */
export const DISTRIBUTED_TABLES = ["resources", "history", "used_keys", "fence_changes"] as const;

/** The database is on neither engine; the message says what is so and what to do. */
export class EngineError extends Error {
  override readonly name = "EngineError";
}

type Rows = readonly Readonly<Record<string, unknown>>[];
export type EngineQuery = (text: string) => Promise<Rows>;

const VERSION = "select extversion as version from pg_catalog.pg_extension where extname = 'citus'";
const TABLES = `
  select (select groupid from pg_catalog.pg_dist_local_group) as local_group,
    pg_catalog.to_regclass('palisade.resources') is not null as has_tables,
    (select count(*)::integer from pg_catalog.pg_dist_node where isactive and noderole = 'primary' and shouldhaveshards) as workers,
    coalesce((select pg_catalog.json_agg(relname::text) from pg_catalog.pg_dist_partition as dist
      join pg_catalog.pg_class on pg_class.oid = dist.logicalrelid and relnamespace = pg_catalog.to_regnamespace('palisade')
      where partmethod = 'h' and pg_catalog.column_to_column_name(logicalrelid, partkey) = 'resource'
        and colocationid = (select colocationid from pg_catalog.pg_dist_partition where logicalrelid = pg_catalog.to_regclass('palisade.resources'))
    ), '[]') as distributed`;
const SHARDS = `
  select shardid::integer as id, shardminvalue::integer as least, shardmaxvalue::integer as most, groupid as worker
  from pg_catalog.pg_dist_shard join pg_catalog.pg_dist_placement using (shardid)
  where logicalrelid = 'palisade.resources'::regclass`;

/** Throws EngineError for a database that is neither. */
export async function engineOf(query: EngineQuery): Promise<Engine> {
  const [extension] = await query(VERSION);
  if (extension === undefined) return { kind: "plain" };
  const [found = {}] = await query(TABLES);
  const distributed = found.distributed as readonly string[];
  if (Number(found.local_group) !== 0) throw new EngineError("this server is a worker of Citus: DATABASE_URL must name the coordinator");
  if (distributed.length === 0) return { kind: "plain" };
  const missing = DISTRIBUTED_TABLES.filter((table) => !distributed.includes(table));
  if (missing.length > 0)
    throw new EngineError(
      `of Palisade's tables ${distributed.join(", ")} are distributed by resource and ${missing.join(", ")} are not distributed with them: while no gateway writes, run select undistribute_table('palisade.TABLE') for those that are and palisade-gateway migrate --citus`,
    );
  if (Number(found.workers) === 0)
    throw new EngineError("this coordinator of Citus has no active worker that may keep shards: add one by citus_add_node");
  const rows = await query(SHARDS);
  const shards = rows.map(({ id, least, most, worker }): Shard => {
    return { id: Number(id), least: Number(least), most: Number(most), worker: Number(worker) };
  });
  return { kind: "citus", version: String(extension.version), shards: new Shards(shards) };
}
