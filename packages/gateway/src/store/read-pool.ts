// The connections that read. They never write, so a lost one loses nothing. Waiting for one is
// bounded in number and in time. On a pooler's connection nothing is set or prepared by name,
// because it is shared with other clients.
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { type Unavailable, unavailable } from "../fence/verdict.js";
import { closing, overloaded } from "./bounded-wait.js";
import { tracing } from "./spans.js";

interface ReadPoolOptions {
  readonly databaseUrl: string;
  readonly size: number;
  readonly maxWaiting: number;
  readonly readTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly onIdleError: (error: Error) => void;
}

/** With the process that Postgres told at connecting; a pooler tells an invented one. */
const LIMIT_STATEMENTS = "select set_config('statement_timeout', $1, false) where pg_backend_pid() = $2";

class ReadClient extends pg.Client {
  #isPooled = false;

  async limitStatements(timeoutMs: number): Promise<void> {
    const { processID } = this as unknown as { readonly processID: number | null };
    const { rowCount } = await this.query(LIMIT_STATEMENTS, [String(timeoutMs), processID]);
    this.#isPooled = rowCount === 0;
  }

  override query(...given: readonly unknown[]): never {
    const [config, ...rest] = given;
    const isNamed = this.#isPooled && typeof config === "object" && config !== null && "name" in config;
    const query = super.query as unknown as (...args: readonly unknown[]) => never;
    return query.call(this, isNamed ? { ...config, name: undefined } : config, ...rest);
  }
}

export class ReadPool {
  readonly #pool: pg.Pool;
  readonly #maxWaiting: number;
  readonly db: ReturnType<typeof drizzle>;

  constructor({ databaseUrl, size, maxWaiting, readTimeoutMs, connectTimeoutMs, onIdleError }: ReadPoolOptions) {
    this.#maxWaiting = maxWaiting;
    this.#pool = new pg.Pool({
      Client: ReadClient,
      connectionString: databaseUrl,
      max: size,
      application_name: "palisade-gateway",
      keepAlive: true,
      // Also bounds the wait for a free connection.
      connectionTimeoutMillis: connectTimeoutMs,
      // pg's pool discards a connection whose query failed, so a late answer cannot reach another
      // query.
      query_timeout: readTimeoutMs,
      // As a start-up parameter, a pooler would refuse it.
      onConnect: (client) => (client as ReadClient).limitStatements(readTimeoutMs),
    });
    // Without a listener an idle connection that Postgres closes would end the process.
    this.#pool.on("error", onIdleError);
    this.db = drizzle(this.#pool);
  }

  get connections(): { readonly total: number; readonly idle: number; readonly waiting: number } {
    return { total: this.#pool.totalCount, idle: this.#pool.idleCount, waiting: this.#pool.waitingCount };
  }

  /** Why no further read may wait where so many do. */
  refusal(waiting: number): Unavailable | undefined {
    if (this.#pool.ending) return closing;
    return waiting >= this.#maxWaiting ? overloaded : undefined;
  }

  /** Every failure of a read is one answer: unavailable, and nothing was changed. */
  async read<T>(work: (db: ReturnType<typeof drizzle>) => Promise<T>): Promise<T | Unavailable> {
    const refusal = this.refusal(this.#pool.waitingCount);
    if (refusal !== undefined) return refusal;
    const span = tracing.spans?.statement("palisade-read");
    try {
      const found = await work(this.db);
      span?.end({});
      return found;
    } catch (error) {
      const cause = causeOf(error);
      span?.end({}, cause instanceof pg.DatabaseError ? (cause.code ?? cause.name) : "unreachable");
      if (!(cause instanceof pg.DatabaseError)) return unavailable("unreachable", cause);
      return unavailable(cause.code === "PLS10" ? "not_recovered" : "refused", cause);
    }
  }

  async end(): Promise<void> {
    await this.#pool.end();
  }
}

/**
 * drizzle wraps what pg threw in an error that repeats the statement and its parameters; names and
 * documents do not belong in a log.
 */
function causeOf(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  return error.cause instanceof Error ? error.cause : error;
}

export async function rowsOf(db: ReadPool["db"], text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return (await db.execute<Record<string, unknown>>(sql.raw(text))).rows;
}
