// Reads: one resource, a page of names, a page of history. They raise no fence and take no lock; a
// caller that reads in order to write must seal first.
import { and, asc, desc, eq, gt, gte, lt, type SQL, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import type { Token, Unavailable, WriteOperation } from "../fence/verdict.js";
import { BoundedWait, closing, overloaded } from "./bounded-wait.js";
import { history, resources } from "./schema.js";
import { tracing } from "./spans.js";

export type ResourceState = {
  readonly resource: string;
  readonly token: Token;
  readonly rev: number;
  readonly seq: number;
  readonly holder: string | null;
  /** When a write or a seal was last accepted. */
  readonly updatedAt: Date;
};

export type ReadResult =
  | (ResourceState & { readonly kind: "found"; readonly value: string })
  /** A fence without a document: deleted, or sealed and never written. */
  | (ResourceState & { readonly kind: "absent" })
  | { readonly kind: "unknown_resource"; readonly resource: string }
  | Unavailable;

export type ListRequest = {
  readonly prefix?: string | undefined;
  readonly limit: number;
  /** The `nextCursor` of the previous page, which is the last name on it. */
  readonly cursor?: string | undefined;
  /**
   * "documents" adds `value` (undefined where there is none); a page then also ends when its
   * documents reach about 4 MB.
   */
  readonly include?: "fences" | "documents" | undefined;
  /** Also resources without a document: deleted, or sealed and never written. */
  readonly tombstones?: "include" | undefined;
};
export type ListItem = ResourceState & { readonly value?: string | undefined };
export type ListResult =
  | {
      readonly kind: "page";
      readonly items: readonly ListItem[];
      readonly nextCursor: string | null;
      /** Read from shards one by one: of a transaction it may show one write and lack another. */
      readonly snapshot?: false;
    }
  | Unavailable;

export type HistoryRequest = {
  readonly resource: string;
  readonly limit: number;
  /** Entries with a revision below this one. */
  readonly beforeRev?: number | undefined;
};
export type HistoryEntry = {
  readonly rev: number;
  readonly op: Exclude<WriteOperation, "seal">;
  readonly token: Token;
  readonly seq: number;
  readonly holder: string | null;
  readonly at: Date;
};
/** Newest first. */
export type HistoryPage = { readonly kind: "history"; readonly entries: readonly HistoryEntry[]; readonly nextBeforeRev: number | null };

const MAX_PAGE_BYTES = 4_000_000;
/**
 * Documents are fetched in steps, so that a page of large ones ends before all of them are in
 * memory.
 */
const DOCUMENTS_PER_STEP = 32;

export const state = {
  resource: resources.resource,
  token: resources.token,
  rev: resources.rev,
  seq: resources.seq,
  holder: resources.holder,
  updatedAt: resources.updatedAt,
};
/** As text: parsed into a JavaScript value, 12345678901234567890 would lose digits. */
export const value = sql<string | null>`${resources.value}::text`;

export async function listResources(pool: ReadPool, request: ListRequest): Promise<ListResult> {
  const { limit, include = "fences" } = request;
  const items: ListItem[] = [];
  let bytes = 0;
  let after = request.cursor;
  for (;;) {
    const wanted = limit - items.length;
    const step = include === "documents" ? Math.min(wanted, DOCUMENTS_PER_STEP) : wanted;
    const rows = await pool.read((db) => {
      const columns = include === "documents" ? { ...state, value } : { ...state, value: sql<string | null>`null` };
      return db
        .select(columns)
        .from(resources)
        .where(and(range(request.prefix ?? "", after), request.tombstones === "include" ? undefined : eq(resources.deleted, false)))
        .orderBy(asc(resources.resource))
        .limit(step + 1);
    });
    if ("kind" in rows) return rows;
    for (const { value: text, ...rest } of rows.slice(0, step)) {
      items.push(text === null ? rest : { ...rest, value: text });
      bytes += text?.length ?? 0;
    }
    after = items.at(-1)?.resource;
    if (rows.length <= step) return { kind: "page", items, nextCursor: null };
    if (items.length >= limit || bytes >= MAX_PAGE_BYTES) return { kind: "page", items, nextCursor: after ?? null };
  }
}

export async function readHistory(pool: ReadPool, { resource, limit, beforeRev }: HistoryRequest): Promise<HistoryPage | Unavailable> {
  return await pool.read(async (db): Promise<HistoryPage> => {
    const of = eq(history.resource, resource);
    const rows = await db
      .select({ rev: history.rev, op: history.op, token: history.token, seq: history.seq, holder: history.holder, at: history.writtenAt })
      .from(history)
      .where(beforeRev === undefined ? of : and(of, lt(history.rev, beforeRev)))
      .orderBy(desc(history.rev))
      .limit(limit + 1);
    const entries = rows.slice(0, limit);
    return { kind: "history", entries, nextBeforeRev: rows.length > limit ? (entries.at(-1)?.rev ?? null) : null };
  });
}

/**
 * Names from the prefix up to the first name without it: a range of the primary key, which compares
 * bytes.
 */
function range(prefix: string, after: string | undefined): SQL | undefined {
  const end = firstNameAfter(prefix);
  return and(
    gte(resources.resource, prefix),
    after === undefined ? undefined : gt(resources.resource, after),
    end === undefined ? undefined : lt(resources.resource, end),
  );
}

/**
 * The smallest name above all names with this prefix: UTF-8 sorts as code points do. Undefined when
 * there is none.
 */
export function firstNameAfter(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0);
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    if (last === 0x10ffff) continue;
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1);
  }
  return undefined;
}

// The connections that read. They never write, so a lost one loses nothing. Waiting for one is
// bounded in number and in time. On a pooler's connection nothing is set or prepared by name,
// because it is shared with other clients.

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
      return { kind: "unavailable", reason: cause instanceof pg.DatabaseError ? "refused" : "unreachable", outcome: "not_applied", cause };
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

// Reads of one resource. Those that wait while others are under way go together as one statement:
// a statement each costs more than all else that a read does.

/** Statements under way while further reads wait for one of them: few, so that more share one. */
const UNDER_WAY = 4;
const MOST_TOGETHER = 16;
/** Of documents in one answer of Postgres, if they are as large as those before. */
const CHARACTERS_TOGETHER = 1_000_000;

interface Waiting {
  readonly resource: string;
  /** The request that it came with, where requests are traced. */
  readonly span: unknown;
  readonly settle: (result: ReadResult) => void;
}

export class ResourceReads {
  readonly #pool: ReadPool;
  readonly #one: (resource: string) => Promise<ReadResult>;
  readonly #several: (names: readonly string[]) => Promise<readonly ReadResult[]>;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>();
  readonly #wait: BoundedWait<Waiting>;
  #underWay = 0;
  #together = MOST_TOGETHER;

  /** `maxWaitMs`: how long a read waits for those under way; they may be slow, and not fail. */
  constructor(pool: ReadPool, maxWaitMs: number) {
    this.#pool = pool;
    [this.#one, this.#several] = statementsOn(pool);
    const limits = { maxAccepted: Number.POSITIVE_INFINITY, maxAcceptedBytes: Number.POSITIVE_INFINITY, maxWaitMs };
    this.#wait = new BoundedWait(limits, (read, why) => this.#taken(read).settle(why));
  }

  /** `alone`: where the rows of several resources are on several servers. */
  read(resource: string, how: "with others" | "alone"): Promise<ReadResult> {
    if (how === "alone") return this.#one(resource);
    return new Promise((settle) => {
      const span = tracing.spans?.current();
      const read: Waiting = { resource, span, settle };
      if (this.#underWay < UNDER_WAY) return void this.#send([read]);
      const refusal = this.#pool.refusal(this.#waiting.size);
      if (refusal !== undefined) return settle(refusal);
      this.#waiting.add(read);
      this.#wait.accept(read);
    });
  }

  #taken(read: Waiting): Waiting {
    this.#waiting.delete(read);
    this.#wait.leave(read);
    return read;
  }

  #takeFirst(atMost: number): Waiting[] {
    const taken: Waiting[] = [];
    for (const read of this.#waiting) if (taken.push(this.#taken(read)) === atMost) break;
    return taken;
  }

  async #send(reads: readonly Waiting[]): Promise<void> {
    this.#underWay += 1;
    const results = await this.#resultsOf(reads);
    this.#underWay -= 1;
    for (const [index, read] of reads.entries()) {
      const result = results[index];
      if (result === undefined) void this.#goAlone(read);
      else read.settle(result);
    }
    if (results.some(({ kind }) => kind !== "unavailable")) this.#next(results);
    // They wait in the pool, and are answered in their time, whatever becomes of the others.
    else for (const read of this.#takeFirst(Number.POSITIVE_INFINITY)) void this.#goAlone(read);
  }

  #resultsOf(reads: readonly Waiting[]): Promise<readonly ReadResult[]> {
    const names = reads.map(({ resource }) => resource);
    const run = async () => (names.length === 1 ? [await this.#one(names[0] ?? "")] : await this.#several(names));
    const { spans } = tracing;
    return spans === undefined
      ? run()
      : spans.together(
          reads.map(({ span }) => span),
          run,
        );
  }

  #next(before: readonly ReadResult[]): void {
    const characters = before.reduce((sum, read) => sum + (read.kind === "found" ? read.value.length : 0), before.length);
    this.#together = Math.max(1, Math.min(MOST_TOGETHER, Math.floor((CHARACTERS_TOGETHER * before.length) / characters)));
    if (this.#waiting.size > 0) void this.#send(this.#takeFirst(this.#together));
  }

  async #goAlone(read: Waiting): Promise<void> {
    for (const result of await this.#resultsOf([read])) read.settle(result);
  }
}

/**
 * Built once, because building a statement costs as much as running it. The second one answers with
 * nothing where it failed.
 */
function statementsOn(pool: ReadPool) {
  const rows = () => pool.db.select({ ...state, value }).from(resources);
  const one = rows()
    .where(eq(resources.resource, sql.placeholder("resource")))
    .prepare("palisade-read");
  const many = rows()
    .where(sql`${resources.resource} = any(${sql.placeholder("names")}::text[])`)
    .prepare("palisade-read-several");
  type Row = Awaited<ReturnType<typeof one.execute>>[number];
  const resultOf = (resource: string, row: Row | undefined): ReadResult => {
    if (row === undefined) return { kind: "unknown_resource", resource };
    const { value: text, ...rest } = row;
    return text === null ? { kind: "absent", ...rest } : { kind: "found", ...rest, value: text };
  };
  return [
    (resource: string) => pool.read(async (): Promise<ReadResult> => resultOf(resource, (await one.execute({ resource }))[0])),
    async (names: readonly string[]): Promise<readonly ReadResult[]> => {
      const found = await pool.read(async () => new Map((await many.execute({ names })).map((row) => [row.resource, row])));
      return "kind" in found ? [] : names.map((name) => resultOf(name, found.get(name)));
    },
  ] as const;
}
