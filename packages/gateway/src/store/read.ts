// Reads: one resource, a page of names, a page of history. They raise no fence and take no lock; a
// caller that reads in order to write must seal first.
import { and, asc, desc, eq, gt, gte, lt, type SQL, sql } from "drizzle-orm";
import type { Token, Unavailable, WriteOperation } from "../fence/verdict.js";
import type { ReadPool } from "./read-pool.js";
import { history, resources } from "./schema.js";

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
