// Whether this database still has every fence that was raised in it. It counts a beat a second while
// writes are acknowledged, and the lock's nodes remember the highest: a database that was restored
// from a backup has fewer, and is not written through before an operator has recovered it (G7).
import type { Fleet } from "@palisade/lock";
import { type ReadPool, rowsOf } from "./read-pool.js";

/** The marks on the lock's nodes: numbers by name that only rise; 0 only reads. */
export type Marks = Pick<Fleet, "mark">;

type Query = (text: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

const BEAT_EVERY_MS = 1_000;
/** A restore takes longer. */
const FRESH_FOR_MS = 2_000;
const LOOK = `
  select id, beat, system_identifier <> (select system_identifier from pg_control_system()) as is_moved,
    confirmed_start is not null and exists (select from palisade.confirmed_lineage)
      or pg_catalog.current_setting('transaction_read_only') = 'on' as is_confirmed
  from palisade.lineage`;
const remedy = "run palisade-gateway recover";

export const markOf = (id: string): string => `palisade-gateway/${id}`;

export class RestoreCheck {
  readonly #marks: Marks;
  /** Whether to write while the nodes cannot be asked: as for tokens that raise a fence. */
  readonly #unreachable: "refuse" | "accept";
  /** The database that the nodes were asked about, and the highest beat seen by them or by us. */
  #known: { readonly id: string; beat: number } | undefined;
  #recalledAt = Number.NEGATIVE_INFINITY;
  #hasFault = false;
  #hasAcknowledged = false;
  #looking: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(marks: Marks, unreachable: "refuse" | "accept") {
    this.#marks = marks;
    this.#unreachable = unreachable;
  }

  /** The beat that the database must have. */
  get least(): number {
    return this.#known?.beat ?? 0;
  }

  /** The last look found one: a connection that was opened before must not be written through. */
  get hasFault(): boolean {
    return this.#hasFault;
  }

  /**
   * Why this database must not be written through; undefined when it may. The nodes are asked each
   * time: other gateways may have seen more of it.
   */
  async fault(query: Query): Promise<string | undefined> {
    const found = await this.#look(query);
    this.#hasFault = found !== undefined;
    return found;
  }

  async #look(query: Query): Promise<string | undefined> {
    const [first] = await query(LOOK);
    if (first === undefined) return "palisade.lineage has no row";
    const unknown = await this.#recall(String(first.id));
    if (unknown !== undefined) return unknown;
    const known = this.#knownOf(first);
    const least = known?.beat ?? 0;
    // Looked at again: a beat that another gateway has counted meanwhile is remembered already.
    const row = Number(first.beat) < least ? (await query(LOOK))[0] : first;
    if (row === undefined || row.id !== first.id) return "the row of palisade.lineage was taken away or replaced";
    const beat = Number(row.beat);
    if (row.is_moved === true) return `it was restored into another cluster: ${remedy}`;
    if (!(beat >= least)) return `it was restored: it is at beat ${beat}, and was at ${least} before: ${remedy}`;
    if (known === undefined) return undefined; // Nobody was asked: that says nothing for own tables.
    known.beat = Math.max(known.beat, beat);
    // Transactions on the user's own tables wait for this word.
    if (row.is_confirmed === false) await query(`select palisade.confirm_lineage(${least})`);
    return undefined;
  }

  /** Undefined while the nodes were not heard about this database. */
  #knownOf(row: Readonly<Record<string, unknown>> | undefined) {
    return this.#known?.id === row?.id ? this.#known : undefined;
  }

  /** Behind a pooler, before a statement: `least` is what the nodes remembered a moment ago. */
  async refresh(): Promise<string | undefined> {
    if (this.#known === undefined || performance.now() - this.#recalledAt < FRESH_FOR_MS) return undefined;
    return await this.#recall(this.#known.id);
  }

  async #recall(id: string): Promise<string | undefined> {
    try {
      const remembered = await this.#marks.mark(markOf(id), 0);
      if (this.#known?.id === id) this.#known.beat = Math.max(this.#known.beat, remembered);
      else this.#known = { id, beat: remembered };
      this.#recalledAt = performance.now();
      return undefined;
    } catch (error) {
      if (this.#unreachable === "accept" || this.#known?.id === id) return undefined;
      return `the lock could not be asked whether it is complete: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  /** A write was acknowledged: the next beat makes it count. */
  acknowledged(): void {
    this.#hasAcknowledged = true;
  }

  /**
   * Each second counts a beat if writes were acknowledged, and looks at what no new connection may
   * tell: a server that was started anew behind a pooler, whose own tables wait to be confirmed; a row
   * that is gone; nodes that were away when the first connection was accepted. `beat` counts one and
   * answers how many there are, unless it cannot.
   */
  start(pool: ReadPool, beat: () => Promise<number | undefined>): void {
    this.#timer = setInterval(() => {
      if (this.#hasAcknowledged) void this.#beat(beat);
      this.#looking ??= this.#lookIfDue(pool).finally(() => {
        this.#looking = undefined;
      });
    }, BEAT_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #lookIfDue(pool: ReadPool): Promise<void> {
    await pool.read(async (db) => {
      const [row] = await rowsOf(db, LOOK);
      if (row?.is_confirmed !== true || this.#knownOf(row) === undefined) await this.fault((text) => rowsOf(db, text));
    });
  }

  async #beat(count: () => Promise<number | undefined>): Promise<void> {
    if (this.#known === undefined) return;
    this.#hasAcknowledged = false;
    const beat = await count();
    const known = this.#known; // A connection that was opened for it may have learned of another.
    if (beat !== undefined) known.beat = Math.max(known.beat, beat);
    const isRemembered =
      beat !== undefined &&
      (await this.#marks.mark(markOf(known.id), beat).then(
        () => true,
        () => false,
      ));
    if (!isRemembered) this.#hasAcknowledged = true; // Tried again in a second.
  }
}
