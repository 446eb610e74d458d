// Accepted writes in the order of their places, for as many readers as are allowed. One look in a
// while serves all readers of this process, and none happens without a reader. A reader has one
// page in memory at most.
import { sql } from "drizzle-orm";
import type { Token, Unavailable, WriteOperation } from "../fence/verdict.js";
import type { EngineWatch } from "./engine-watch.js";
import type { ReadPool } from "./read-pool.js";

export interface Change {
  readonly position: number;
  readonly resource: string;
  readonly rev: number;
  readonly op: Exclude<WriteOperation, "seal">;
  readonly token: Token;
  readonly seq: number;
  readonly holder: string | null;
  readonly at: string;
}

export type ChangePage =
  /** Everything up to `position` under the prefix. */
  | { readonly kind: "changes"; readonly entries: readonly Change[]; readonly position: number }
  /** Something after the reader's place is no longer kept, or the place was never given. */
  | { readonly kind: "gone" }
  /** The tables are distributed, and their shards give changes no places in one order. */
  | { readonly kind: "unordered" }
  | Unavailable;

interface ChangeFeedParts {
  readonly pool: ReadPool;
  readonly engine: Pick<EngineWatch, "known" | "look">;
  readonly maxReaders: number;
}

const LOOK_EVERY_MS = 200;
const ORDERED_AT_ONCE = 5_000;
/** Places that one page looks at. */
const PAGE = 500;
/** For this transaction: a place that was told must not be given again after a crash. */
const DURABLE = sql.raw(`pg_catalog.set_config('synchronous_commit',
  case pg_catalog.current_setting('synchronous_commit') when 'remote_apply' then 'remote_apply' else 'on' end, true)`);

export class ChangeFeed {
  readonly #parts: ChangeFeedParts;
  readonly #waiting = new Set<() => void>();
  readonly #ended = new AbortController();
  #readers = 0;
  #last = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ChangeFeedParts) {
    this.#parts = parts;
  }

  /** Aborts when the gateway closes. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** False when there are as many readers as are allowed. */
  enter(): boolean {
    if (this.#readers >= this.#parts.maxReaders || this.ended.aborted) return false;
    this.#readers += 1;
    return true;
  }

  leave(): void {
    this.#readers -= 1;
  }

  /** After a place; from now on without one. */
  async page(prefix: string, after: number | undefined): Promise<ChangePage> {
    const { engine } = this.#parts;
    const unknown = engine.known === undefined ? await engine.look() : undefined;
    if (unknown !== undefined) return unknown;
    if (engine.known?.kind === "citus") return { kind: "unordered" };
    if (after === undefined) await this.#order();
    const from = after === undefined ? sql`changes.last` : sql`${after}::bigint`;
    return await this.#parts.pool.read(async (db): Promise<ChangePage> => {
      const { rows } = await db.execute<Record<string, unknown>>(sql`
        select changes.last, changes.forgotten, ${from} as after, told.*
        from palisade.changes left join lateral (
          select position, resource, rev, op, token, seq, holder, pg_catalog.to_jsonb(written_at at time zone 'UTC') #>> '{}' as at
          from palisade.history where position > ${from} and position <= ${from} + ${PAGE}::bigint
        ) as told on pg_catalog.starts_with(told.resource, ${prefix}) order by told.position`);
      const [first] = rows;
      const [last, start] = [Number(first?.last), Number(first?.after)];
      if (start < Number(first?.forgotten) || start > last) return { kind: "gone" };
      // Lower than before after a failover: a reader at the end would otherwise never wait.
      this.#last = Math.min(this.#last, last);
      const entries = rows.flatMap((row) => (row.position === null ? [] : [changeOf(row)]));
      return { kind: "changes", entries, position: Math.min(last, start + PAGE) };
    });
  }

  /**
   * Resolves when there may be something after the place, after so long, when the signal aborts, or
   * at the end.
   */
  async beyond(position: number, waitMs: number, signal: AbortSignal): Promise<void> {
    if (this.#last > position || signal.aborted || this.ended.aborted) return;
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        clearTimeout(limit);
        this.#waiting.delete(settle);
        signal.removeEventListener("abort", settle);
        resolve();
      };
      const limit = setTimeout(settle, waitMs);
      signal.addEventListener("abort", settle);
      this.#waiting.add(settle);
      this.#timer ??= setTimeout(() => void this.#look(), LOOK_EVERY_MS).unref();
    });
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#ended.abort();
    for (const settle of [...this.#waiting]) settle();
  }

  async #look(): Promise<void> {
    const last = await this.#order();
    this.#timer = undefined;
    if (this.ended.aborted) return;
    if (last > this.#last) {
      this.#last = last;
      for (const settle of [...this.#waiting]) settle();
    }
    if (this.#waiting.size > 0) this.#timer ??= setTimeout(() => void this.#look(), LOOK_EVERY_MS).unref();
  }

  /** Answers the highest place, also one that another gateway gave. */
  async #order(): Promise<number> {
    for (;;) {
      const found = await this.#parts.pool.read(async (db) => {
        const { rows: ordered } = await db.execute<{ readonly ordered: number | null }>(
          sql`select palisade.order_changes(${ORDERED_AT_ONCE}) as ordered, ${DURABLE}`,
        );
        const { rows } = await db.execute<{ readonly last: string }>(sql`select last from palisade.changes`);
        return { last: Number(rows[0]?.last), isWhole: ordered[0]?.ordered === ORDERED_AT_ONCE };
      });
      if ("kind" in found) return this.#last;
      if (!found.isWhole) return found.last;
    }
  }
}

function changeOf(row: Readonly<Record<string, unknown>>): Change {
  return {
    position: Number(row.position),
    resource: String(row.resource),
    rev: Number(row.rev),
    op: row.op as Change["op"],
    token: Number(row.token),
    seq: Number(row.seq),
    holder: row.holder === null ? null : String(row.holder),
    at: `${String(row.at)}Z`,
  };
}
