// Writes that were refused, as an operator asks for them later. They are gathered in memory and
// stored once a second, so no answer waits for it, and a flood of them costs no more than one
// statement a second: what is beyond the bound is counted and not kept.
import { and, desc, gte, lt, sql } from "drizzle-orm";
import type { Token, Unavailable } from "../fence/verdict.js";
import { firstNameAfter } from "./read.js";
import type { ReadPool } from "./read-pool.js";
import { refusals } from "./schema.js";

export interface RefusedWrite {
  readonly resource: string;
  /** Of the problem that was answered. */
  readonly code: string;
  readonly presentedToken: Token | null;
  readonly currentToken: Token | null;
  /** The principal whose credential it was. */
  readonly caller: string;
  readonly at: Date;
}

export type RefusedEntry = RefusedWrite & {
  readonly id: number;
  /** How many since the entry before were not kept. */
  readonly missed: number;
};

export type RefusedRequest = {
  readonly prefix: string;
  readonly limit: number;
  readonly since?: Date | undefined;
  /** Entries with an id below this one. */
  readonly before?: number | undefined;
};
/** Newest first. */
export type RefusedPage = { readonly kind: "refused_page"; readonly entries: readonly RefusedEntry[]; readonly nextBefore: number | null };

/** Kept between two statements. */
export const MAX_PENDING = 1_000;
const STORE_EVERY_MS = 1_000;

export class RefusalLog {
  readonly #pool: ReadPool;
  #pending: RefusedWrite[] = [];
  #missed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: ReadPool) {
    this.#pool = pool;
  }

  note(refused: RefusedWrite): void {
    if (this.#pending.length >= MAX_PENDING) {
      this.#missed += 1;
      return;
    }
    this.#pending.push(refused);
    this.#timer ??= setTimeout(() => void this.store(), STORE_EVERY_MS).unref();
  }

  /** What cannot be stored is counted as missed. */
  async store(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const [gathered, missed] = [this.#pending, this.#missed];
    if (gathered.length === 0) return;
    [this.#pending, this.#missed] = [[], 0];
    const rows = JSON.stringify(gathered.map((refused, index) => ({ ...refused, missed: index === gathered.length - 1 ? missed : 0 })));
    const stored = await this.#pool.read((db) =>
      db.execute(sql`
        insert into palisade.refusals (refused_at, presented_token, current_token, missed, resource, code, caller)
        select given.at, given."presentedToken", given."currentToken", given.missed, given.resource, given.code, given.caller
        from pg_catalog.jsonb_to_recordset(${rows}::jsonb)
          as given(at timestamptz, "presentedToken" bigint, "currentToken" bigint, missed bigint, resource text, code text, caller text)`),
    );
    if ("kind" in stored) this.#missed += missed + gathered.length;
  }

  async read({ prefix, limit, since, before }: RefusedRequest): Promise<RefusedPage | Unavailable> {
    const end = firstNameAfter(prefix);
    return await this.#pool.read(async (db): Promise<RefusedPage> => {
      const rows = await db
        .select()
        .from(refusals)
        .where(
          and(
            gte(refusals.resource, prefix),
            end === undefined ? undefined : lt(refusals.resource, end),
            since === undefined ? undefined : gte(refusals.at, since),
            before === undefined ? undefined : lt(refusals.id, before),
          ),
        )
        .orderBy(desc(refusals.id))
        .limit(limit + 1);
      const entries = rows.slice(0, limit);
      return { kind: "refused_page", entries, nextBefore: rows.length > limit ? (entries.at(-1)?.id ?? null) : null };
    });
  }

  /** Stores what is there. */
  async end(): Promise<void> {
    await this.store();
    clearTimeout(this.#timer);
  }
}
