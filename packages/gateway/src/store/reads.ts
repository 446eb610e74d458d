// Reads: the tables as they are read, one resource, a page of names, a page of history, and forgetting
// the history when its time is over. They raise no fence and take no lock; a caller that reads in
// order to write must seal first.
import { and, asc, desc, eq, gt, gte, lt, type SQL, sql } from "drizzle-orm";
import { bigint, boolean, customType, jsonb, pgSchema, text, timestamp } from "drizzle-orm/pg-core";
import type { Token, Unavailable, WriteOperation } from "../fence/verdict.js";
import { BoundedWait } from "./bounded-wait.js";
import type { ReadPool } from "./read-pool.js";
import type { RestoreCheck } from "./restore-check.js";
import { BEAT } from "./session.js";
import { tracing } from "./spans.js";

// Of the tables what is read through drizzle. The SQL files in migrations/ are what is applied; a test
// compares the two.

/** Text compared byte by byte, because prefix lists use the key. drizzle cannot express a collation. */
const name = customType<{ data: string }>({ dataType: () => 'text collate "C"' });
/**
 * int8 arrives as text and becomes a number: every such column is checked to stay within 15 digits,
 * or counts something that will.
 */
const count = (column: string) => bigint(column, { mode: "number" }).notNull();
const instant = (column: string) => timestamp(column, { withTimezone: true }).notNull();
const palisade = pgSchema("palisade");

export const resources = palisade.table("resources", {
  resource: name("resource").notNull(),
  token: count("token"),
  seq: count("seq"),
  rev: count("rev"),
  holder: text("holder"),
  updatedAt: instant("updated_at"),
  deleted: boolean("deleted").notNull(),
  value: jsonb("value"),
});

export const history = palisade.table("history", {
  resource: name("resource").notNull(),
  rev: count("rev"),
  op: text("op", { enum: ["put", "patch", "delete"] }).notNull(),
  token: count("token"),
  seq: count("seq"),
  holder: text("holder"),
  writtenAt: instant("written_at"),
});

export const fenceChanges = palisade.table("fence_changes", {
  id: count("id"),
  changedAt: instant("changed_at"),
  previousToken: bigint("previous_token", { mode: "number" }),
  token: count("token"),
  resource: name("resource").notNull(),
  changedBy: text("changed_by").notNull(),
  reason: text("reason").notNull(),
});

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
  /** A document that is too large to be read besides others: it is read by itself (`readWhole`). */
  | (ResourceState & { readonly kind: "large" })
  | { readonly kind: "unknown_resource"; readonly resource: string }
  | Unavailable;
/** The text in UTF-8. */
export type WholeResult =
  | Exclude<ReadResult, { kind: "found" | "large" }>
  | (ResourceState & { readonly kind: "found"; readonly value: Buffer });

const state = {
  resource: resources.resource,
  token: resources.token,
  rev: resources.rev,
  seq: resources.seq,
  holder: resources.holder,
  updatedAt: resources.updatedAt,
};
/** As text: parsed into a JavaScript value, 12345678901234567890 would lose digits. */
const value = sql<string | null>`${resources.value}::text`;
const { deleted } = resources;

const SMALL_DOCUMENT_BYTES = 256 * 1024;
/** Of one that Postgres has compressed: what repeats itself may be ninety times as large as it is stored. */
const SMALL_COMPRESSED_BYTES = 32 * 1024;

/**
 * A document as text, in SQL; null for a large one. What may be large, as it is stored, is not even
 * looked at, and what is compressed is known by its text, which is made once.
 */
export const smallDocument = (column: string): string => `(
    select it.text from (
      select ${column}::text as text where pg_catalog.pg_column_size(${column}) <= ${SMALL_COMPRESSED_BYTES}
        or pg_catalog.pg_column_compression(${column}) is null and pg_catalog.pg_column_size(${column}) <= ${SMALL_DOCUMENT_BYTES} offset 0
    ) as it where pg_catalog.octet_length(it.text) <= ${SMALL_DOCUMENT_BYTES}
  )`;

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
  readonly #one: (resource: string, how?: "without the beat") => Promise<ReadResult>;
  readonly #several: (names: readonly string[]) => Promise<readonly ReadResult[]>;
  readonly #whole: (resource: string, how?: "without the beat") => Promise<WholeResult>;
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>();
  readonly #wait: BoundedWait<Waiting>;
  #underWay = 0;
  #together = MOST_TOGETHER;

  /** `maxWaitMs`: how long a read waits for those under way; they may be slow, and not fail. */
  constructor(pool: ReadPool, maxWaitMs: number, restoreCheck?: Pick<RestoreCheck, "least">) {
    this.#pool = pool;
    [this.#one, this.#several, this.#whole] = statementsOn(pool, restoreCheck);
    const limits = { maxAccepted: Number.POSITIVE_INFINITY, maxAcceptedBytes: Number.POSITIVE_INFINITY, maxWaitMs };
    this.#wait = new BoundedWait(limits, (read, why) => this.#taken(read).settle(why));
  }

  /** `alone`: where the rows of several resources are on several servers. */
  read(resource: string, how: "with others" | "alone"): Promise<ReadResult> {
    if (how === "alone") return this.#one(resource, "without the beat"); // A worker does not know it.
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

  /** However large its document is. Whoever asks bounds how many are read at once. */
  readWhole(resource: string, how: "with others" | "alone"): Promise<WholeResult> {
    return this.#whole(resource, how === "alone" ? "without the beat" : undefined);
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
function statementsOn(pool: ReadPool, restoreCheck: Pick<RestoreCheck, "least"> | undefined) {
  const small = sql<string | null>`${sql.raw(smallDocument("resources.value"))}`;
  const rows = (document: typeof value) => pool.db.select({ ...state, value: document, deleted }).from(resources);
  const beat = sql.placeholder("beat");
  const demand = restoreCheck && sql`case when ${sql.raw(BEAT)} >= ${beat}::bigint then true else palisade.demand_beat(${beat}) end`;
  const named = eq(resources.resource, sql.placeholder("resource"));
  const one = rows(small).where(and(named, demand)).prepare("palisade-read");
  const oneOfWorker = rows(small).where(named).prepare("palisade-read-of-worker");
  const many = rows(small)
    .where(and(sql`${resources.resource} = any(${sql.placeholder("names")}::text[])`, demand))
    .prepare("palisade-read-several");
  const whole = rows(value).where(and(named, demand)).prepare("palisade-read-whole");
  const wholeOfWorker = rows(value).where(named).prepare("palisade-read-whole-of-worker");
  type Row = Awaited<ReturnType<typeof one.execute>>[number];
  const resultOf = (resource: string, row: Row | undefined): ReadResult => {
    if (row === undefined) return { kind: "unknown_resource", resource };
    const { value: text, deleted: isDeleted, ...rest } = row;
    if (text !== null) return { kind: "found", ...rest, value: text };
    return { kind: isDeleted ? "absent" : "large", ...rest };
  };
  const readBy =
    (statement: typeof one, ofWorker: typeof oneOfWorker) =>
    (resource: string, how?: "without the beat"): Promise<ReadResult> =>
      pool.read(async () => {
        const [row] = await (how === undefined ? statement : ofWorker).execute({ resource, beat: restoreCheck?.least });
        return resultOf(resource, row);
      });
  const readWhole = readBy(whole, wholeOfWorker);
  return [
    readBy(one, oneOfWorker),
    async (names: readonly string[]): Promise<readonly ReadResult[]> => {
      const found = await pool.read(
        async () => new Map((await many.execute({ names, beat: restoreCheck?.least })).map((row) => [row.resource, row])),
      );
      return "kind" in found ? [] : names.map((name) => resultOf(name, found.get(name)));
    },
    async (resource: string, how?: "without the beat"): Promise<WholeResult> => {
      const result = await readWhole(resource, how);
      return result.kind === "found" ? { ...result, value: Buffer.from(result.value) } : (result as WholeResult);
    },
  ] as const;
}

// Pages of names.

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

const MAX_PAGE_BYTES = 4_000_000;
/** So that Postgres measures no more documents than that for a page of few. */
const DOCUMENTS_PER_STEP = 32;

export async function listResources(pool: ReadPool, request: ListRequest): Promise<ListResult> {
  const { limit, prefix = "", include = "fences", tombstones } = request;
  const items: ListItem[] = [];
  let bytes = 0;
  let after = request.cursor;
  for (;;) {
    const where = and(range(prefix, after), tombstones === "include" ? undefined : eq(deleted, false));
    const wanted = limit - items.length;
    const step = include === "documents" ? Math.min(wanted, DOCUMENTS_PER_STEP) : wanted;
    const rows = await pool.read((db) =>
      include === "documents" ? documentsOf(db, { where, limit: step + 1, bytes }) : fencesOf(db, { where, limit: step + 1 }),
    );
    if ("kind" in rows) return rows;
    // A step begins only where there is more, so that none means: no more of them on this page.
    const there = Number(rows[0]?.there ?? items.length);
    for (const { value: text, there: _there, bytesToHere, ...rest } of rows.slice(0, step)) {
      items.push(text === null ? rest : { ...rest, value: text });
      bytes = Number(bytesToHere);
    }
    after = items.at(-1)?.resource;
    if (rows.length < there || (there > step && items.length >= limit)) return { kind: "page", items, nextCursor: after ?? null };
    if (there <= step) return { kind: "page", items, nextCursor: null };
  }
}

interface Part {
  readonly where: SQL | undefined;
  readonly limit: number;
}

async function fencesOf(db: ReadPool["db"], { where, limit }: Part) {
  const rows = await db.select(state).from(resources).where(where).orderBy(asc(resources.resource)).limit(limit);
  return rows.map((row) => ({ ...row, value: null, there: rows.length, bytesToHere: 0 }));
}

/** `bytes`: of those on the page already. The first one of a page is there however large it is. */
async function documentsOf(db: ReadPool["db"], { where, limit, bytes }: Part & { readonly bytes: number }) {
  const inOrder = asc(resources.resource);
  const some = db
    .select({ ...state, document: resources.value })
    .from(resources)
    .where(where)
    .orderBy(inOrder)
    .limit(limit)
    .as("some");
  const bytesToHere = sql<number>`sum(coalesce(octet_length(${some.document}::text), 0)) over (order by ${some.resource}) + ${bytes}::bigint`;
  const measured = db
    .select({
      resource: some.resource,
      token: some.token,
      rev: some.rev,
      seq: some.seq,
      holder: some.holder,
      updatedAt: some.updatedAt,
      document: some.document,
      there: sql<number>`count(*) over ()`.as("there"),
      bytesToHere: bytesToHere.as("bytes_to_here"),
      place: sql<number>`row_number() over (order by ${some.resource})`.as("place"),
    })
    .from(some)
    .as("measured");
  const { document, place, ...columns } = measured._.selectedFields;
  const isFirst = bytes === 0 ? sql` or ${place} = 1` : sql``;
  return await db
    .select({ ...columns, value: sql<string | null>`${document}::text` })
    .from(measured)
    .where(sql`${measured.bytesToHere} <= ${MAX_PAGE_BYTES}${isFirst}`)
    .orderBy(asc(measured.resource));
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

// The history of a resource.

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

/** The accepted writes of one token, among the last of a resource. */
export interface TokenWrites {
  readonly token: Token;
  readonly writes: number;
  readonly firstAt: Date;
  readonly lastAt: Date;
}

const LAST_WRITES = 5_000;
const LAST_TOKENS = 8;

/** Of the last tokens, the newest first. */
export async function readTokenWrites(pool: ReadPool, resource: string): Promise<readonly TokenWrites[] | Unavailable> {
  return await pool.read(async (db) => {
    const last = db
      .select({ token: history.token, at: history.writtenAt })
      .from(history)
      .where(eq(history.resource, resource))
      .orderBy(desc(history.rev))
      .limit(LAST_WRITES)
      .as("last");
    return await db
      .select({
        token: last.token,
        writes: sql<number>`count(*)::integer`,
        firstAt: sql<Date>`min(${last.at})`.mapWith(history.writtenAt),
        lastAt: sql<Date>`max(${last.at})`.mapWith(history.writtenAt),
      })
      .from(last)
      .groupBy(last.token)
      .orderBy(desc(last.token))
      .limit(LAST_TOKENS);
  });
}

/** A fence that an operator moved, also to take a lock away from its holder. */
export interface FenceMove {
  readonly at: Date;
  readonly by: string;
  readonly reason: string;
  /** Null: the store had not seen the resource. */
  readonly previousToken: Token | null;
  readonly token: Token;
}

/** Undefined: nobody ever moved it by hand. */
export async function readLastMove(pool: ReadPool, resource: string): Promise<FenceMove | undefined | Unavailable> {
  const found = await pool.read(async (db) => ({
    rows: await db
      .select({
        at: fenceChanges.changedAt,
        by: fenceChanges.changedBy,
        reason: fenceChanges.reason,
        previousToken: fenceChanges.previousToken,
        token: fenceChanges.token,
      })
      .from(fenceChanges)
      .where(eq(fenceChanges.resource, resource))
      .orderBy(desc(fenceChanges.id))
      .limit(1),
  }));
  return "kind" in found ? found : found.rows[0];
}

// Entries of the history are forgotten as fast as they come. The gateway's role has no right to
// delete; a function of the schema's owner deletes these and nothing else, a bounded number at a
// time. Several gateways may run it at once.

interface Retention {
  readonly pool: ReadPool;
  readonly historyRetentionMs: number;
  readonly onError: (error: Error) => void;
}

/** A few tenths of a second of deleting. */
const MAX_AT_ONCE = 10_000;
const MAX_PAUSE_MS = 10_000;

/** At once again while there is more, otherwise after a pause. */
export function forgetOld({ pool, historyRetentionMs, onError }: Retention): { stop(): void } {
  const olderThan = sql`pg_catalog.make_interval(secs => ${historyRetentionMs / 1_000})`;
  const statement = sql`select palisade.forget_history(${olderThan}, ${MAX_AT_ONCE}) as forgotten`;
  const pauseMs = Math.min(MAX_PAUSE_MS, historyRetentionMs / 20);
  let stopped = false;
  let timer = later(pauseMs);
  function later(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => void forget(), delayMs).unref();
  }
  async function forget(): Promise<void> {
    const result = await pool.read((db) => db.execute<{ readonly forgotten: number }>(statement));
    if (stopped) return;
    const failed = "kind" in result;
    if (failed && result.reason === "refused" && result.cause !== undefined) onError(result.cause);
    timer = later(!failed && result.rows[0]?.forgotten === MAX_AT_ONCE ? 0 : pauseMs);
  }
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
