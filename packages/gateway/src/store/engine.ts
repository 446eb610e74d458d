// On what the tables stand: plain Postgres, or shards of Citus on several workers. The database
// says it, and nothing else does: the extension may be there without a distributed table.
import { type Unavailable, unavailable } from "../fence/verdict.js";
import { type ReadPool, rowsOf } from "./read-pool.js";

export type Engine =
  | { readonly kind: "plain" }
  | {
      readonly kind: "citus";
      readonly version: string;
      /** Which worker keeps which names. */
      readonly shards: Shards;
    };

/** Distributed by the name of a resource; all other tables stay on the coordinator. */
export const DISTRIBUTED_TABLES = ["resources", "history", "fence_changes"] as const;

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
  select shardminvalue::integer as least, shardmaxvalue::integer as most, groupid as worker
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
      `of Palisade's tables ${distributed.join(", ")} are distributed by resource and ${missing.join(", ")} are not distributed with them: while no gateway writes, run select undistribute_table('palisade.TABLE') for those that are and npx @palisade/gateway migrate --citus`,
    );
  if (Number(found.workers) === 0)
    throw new EngineError("this coordinator of Citus has no active worker that may keep shards: add one by citus_add_node");
  const rows = await query(SHARDS);
  const shards = rows.map(({ least, most, worker }): Shard => {
    return { least: Number(least), most: Number(most), worker: Number(worker) };
  });
  return { kind: "citus", version: String(extension.version), shards: new Shards(shards) };
}

// Which engine this gateway writes to, from the first look on. What a statement may be and which
// writes go together rest on it, so a database that becomes another one meanwhile is not written
// through. The shards' places are looked at again now and then: they move.

const LOOK_EVERY_MS = 5_000;

export class EngineWatch {
  /** Undefined before the first look that was answered. */
  known: Engine | undefined;
  readonly #pool: ReadPool;
  readonly #onFound: (engine: Engine) => void;
  #looking: Promise<Unavailable | undefined> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: ReadPool, onFound: (engine: Engine) => void) {
    this.#pool = pool;
    this.#onFound = onFound;
  }

  /** Why nothing can be written; undefined when the engine is known. One look at a time. */
  look(): Promise<Unavailable | undefined> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** What a session without the extension tells, unless the tables were distributed before. */
  plain(): void {
    this.known ??= { kind: "plain" };
  }

  /** For a session that was just opened: why it must not be written through. */
  async fault(query: EngineQuery): Promise<string | undefined> {
    try {
      const found = await engineOf(query);
      if (this.known !== undefined && this.known.kind !== found.kind)
        return `its tables were on ${this.known.kind === "citus" ? "Citus" : "plain Postgres"} when this gateway looked first, and are on ${found.kind === "citus" ? "Citus" : "plain Postgres"} now: start the gateway anew`;
      this.known = found;
      this.#onFound(found);
      if (found.kind === "citus") this.#timer ??= setInterval(() => void this.look(), LOOK_EVERY_MS).unref();
      return undefined;
    } catch (error) {
      if (error instanceof EngineError) return error.message;
      throw error;
    }
  }

  async #look(): Promise<Unavailable | undefined> {
    const found = await this.#pool.read(async (db) => ({ fault: await this.fault((text) => rowsOf(db, text)) }));
    if ("kind" in found) return found;
    return found.fault === undefined ? undefined : unavailable("refused", new Error(found.fault));
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}

// Which shard of Citus keeps a name, as the coordinator decides it: by the hash that Postgres makes
// of the text. What is computed here chooses connections only. A row is written where
// the coordinator says, so a map that is out of date costs time and never a write.

export interface Shard {
  /** The hashes that it keeps. */
  readonly least: number;
  readonly most: number;
  /** The group of the node that it is placed on. */
  readonly worker: number;
}

export class Shards {
  readonly #shards: readonly Shard[];

  constructor(shards: readonly Shard[]) {
    this.#shards = [...shards].sort((a, b) => a.least - b.least);
  }

  get workers(): readonly number[] {
    return [...new Set(this.#shards.map(({ worker }) => worker))].sort((a, b) => a - b);
  }

  get count(): number {
    return this.#shards.length;
  }

  shardOf(name: string): Shard {
    const hash = textHash(name);
    let [low, high] = [0, this.#shards.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#shards[middle]?.least ?? 0) <= hash) low = middle;
      else high = middle - 1;
    }
    const shard = this.#shards[low];
    if (shard === undefined) throw new Error("invariant: a distributed table has shards");
    return shard;
  }
}

const encoder = new TextEncoder();
const rotated = (value: number, by: number): number => (value << by) | (value >>> (32 - by));

/**
 * hashtext() of Postgres under the collation "C": Bob Jenkins' lookup3 over the bytes in UTF-8, as
 * a signed number of 32 bits. Postgres keeps it for ever, because hash partitions rest on it.
 */
export function textHash(text: string): number {
  const bytes = encoder.encode(text);
  const seed = (0x9e3779b9 + bytes.length + 3_923_095) | 0;
  let [a, b, c] = [seed, seed, seed];
  let at = 0;
  const word = (from: number): number => byte(from) | (byte(from + 1) << 8) | (byte(from + 2) << 16) | (byte(from + 3) << 24);
  const byte = (from: number): number => bytes[from] ?? 0;
  for (; bytes.length - at >= 12; at += 12) {
    a = (a + word(at)) | 0;
    b = (b + word(at + 4)) | 0;
    c = (c + word(at + 8)) | 0;
    a = ((a - c) ^ rotated(c, 4)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, 6)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, 8)) | 0;
    b = (b + a) | 0;
    a = ((a - c) ^ rotated(c, 16)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, 19)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, 4)) | 0;
    b = (b + a) | 0;
  }
  a = (a + word(at)) | 0;
  b = (b + word(at + 4)) | 0;
  // The lowest byte of the last word is kept for the length.
  c = (c + (word(at + 8) << 8)) | 0;
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  return ((c ^ b) - rotated(b, 24)) | 0;
}
