// Whether this database still has every fence that was raised in it (G7). It counts a beat a second
// while writes are acknowledged, and the lock's nodes remember the highest. A database that was
// restored from a backup has fewer, or a lineage that another transaction wrote than the one that it
// names; and one of another id is another database. What is known here is demanded by each statement
// (beatDemand of session.ts), whatever happens under its connection; what is found here is kept in the
// database, until an operator has recovered it.
import type { Fleet } from "@palisade/lock";
import { type Unavailable, unavailable } from "../fence/verdict.js";
import { type ReadPool, rowsOf } from "./read-pool.js";

/** The marks on the lock's nodes: numbers by name that only rise; 0 only reads. */
export type Marks = Pick<Fleet, "mark">;

type Row = Readonly<Record<string, unknown>>;

const LOOK_EVERY_MS = 1_000;
/** For so long what the nodes said is not asked again before a statement. A backup that is restored is older. */
const FRESH_FOR_MS = 5_000;
const LOOK = `
  select id, beat,
    case when system_identifier <> (select system_identifier from pg_control_system()) then 'it was restored into another cluster'
      when written_by <> lineage.xmin then 'it was restored: its lineage was loaded from a dump, or was found wanting before' end as fault,
    confirmed_start is not null and exists (select from palisade.confirmed_lineage)
      or pg_catalog.current_setting('transaction_read_only') = 'on' as is_confirmed,
    (select count(*) from palisade.recoveries) as recoveries
  from palisade.lineage`;
const remedy = "run npx @palisade/gateway recover";
const REPLACED = `another database has taken its place: put it back, or ${remedy}; where it shall be written as it is, start this gateway anew`;

export const markOf = (id: string): string => `palisade-gateway/${id}`;

interface RestoreCheckOptions {
  readonly marks: Marks;
  /** Whether to write while the nodes cannot be asked: as for tokens that raise a fence. */
  readonly unreachable: "refuse" | "accept";
  readonly pool: ReadPool;
  /** palisade.beat() on a connection whose commits last; undefined where it counted none. */
  readonly count: (atLeast: number) => Promise<number | undefined>;
}

export class RestoreCheck {
  readonly #options: RestoreCheckOptions;
  /** The database that the nodes were asked about, and the highest beat seen by them or by us. */
  #known: { readonly id: string; beat: number } | undefined;
  /** One of another id that was found in its place, and how often it had been recovered until then. */
  #stranger: { readonly id: string; readonly recoveries: number } | undefined;
  /** What was found wanting in the database. */
  #fault: string | undefined;
  /** Why nothing may be written while the nodes cannot be asked. */
  #unasked: string | undefined;
  #isHeard = false;
  #isConfirmed = false;
  #hasAcknowledged = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #looking: Promise<string | undefined> | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: RestoreCheckOptions) {
    this.#options = options;
  }

  /** The beat that the database must have. */
  get least(): number {
    return this.#known?.beat ?? 0;
  }

  /**
   * Before a statement that demands it: resolves with why none may be sent. Undefined where nothing
   * has to be waited for, which is so but for the first one, after a pause of this process, and in a
   * database that was not recovered.
   */
  refresh(): Promise<string | undefined> | undefined {
    if (this.#refusal === undefined && performance.now() - this.#lookedAt < FRESH_FOR_MS) return undefined;
    return this.look();
  }

  get #refusal(): string | undefined {
    return this.#fault ?? this.#unasked;
  }

  /** The same before a read, which the nodes need not vouch for. */
  refusalOfRead(): Promise<Unavailable | undefined> | undefined {
    if (this.#fault === undefined && this.#lookedAt > 0) return undefined;
    return this.look().then(() => (this.#fault === undefined ? undefined : unavailable("not_recovered", new Error(this.#fault))));
  }

  /** A statement found the beat missing. */
  found(fault: string): void {
    this.#fault = fault;
  }

  /** A write was acknowledged: the next beat makes it count. */
  acknowledged(): void {
    this.#hasAcknowledged = true;
  }

  /** Each second, whether anybody writes or not: own tables may wait to be confirmed, and other gateways may know more. */
  start(): void {
    this.#timer = setInterval(() => void this.pulse(), LOOK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Looks, and counts a beat where one is due. Why this database must not be written through. */
  async pulse(): Promise<string | undefined> {
    const fault = await this.look();
    if (this.#isHeard && (fault !== undefined || this.#hasAcknowledged || !this.#isConfirmed)) await this.#beat();
    return fault;
  }

  /** Why this database must not be written through; undefined when it may. One look at a time. */
  look(): Promise<string | undefined> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async #look(): Promise<string | undefined> {
    const found = await this.#options.pool.read(async (db) => ({ fault: await this.#judge(() => rowsOf(db, LOOK)) }));
    this.#lookedAt = performance.now();
    if (!("kind" in found)) this.#fault = found.fault;
    else if (this.#known === undefined && this.#options.unreachable === "refuse")
      this.#unasked = `it could not be looked at (${found.reason}): ${found.cause?.message ?? "no connection was free"}`;
    return this.#refusal;
  }

  async #judge(look: () => Promise<readonly Row[]>): Promise<string | undefined> {
    const [first] = await look();
    if (first === undefined) return "palisade.lineage has no row";
    if (this.#isStranger(first)) {
      this.#isHeard = false; // The nodes were not asked about this one, and no beat is counted in it.
      return REPLACED;
    }
    await this.#ask(first);
    const known = this.#knownOf(first);
    const least = known?.beat ?? 0;
    // Looked at again: a beat that another gateway has counted meanwhile is remembered already.
    const row = Number(first.beat) < least ? (await look())[0] : first;
    if (row === undefined || row.id !== first.id) return "the row of palisade.lineage was taken away or replaced";
    const beat = Number(row.beat);
    if (!(beat >= least)) return `it was restored: it is at beat ${beat}, and was at ${least} before: ${remedy}`;
    if (row.fault !== null) return `${String(row.fault)}: ${remedy}`;
    if (known !== undefined) known.beat = Math.max(least, beat);
    this.#isConfirmed = row.is_confirmed === true;
    return undefined;
  }

  /** Whether it is another database than the one known, and nobody has recovered it since it was met. */
  #isStranger(row: Row): boolean {
    const [id, recoveries] = [String(row.id), Number(row.recoveries)];
    if (this.#known === undefined || this.#known.id === id) {
      this.#stranger = undefined;
      return false;
    }
    if (this.#stranger?.id !== id) this.#stranger = { id, recoveries };
    return !(recoveries > this.#stranger.recoveries);
  }

  #knownOf({ id }: Row) {
    return this.#known?.id === id ? this.#known : undefined;
  }

  /** Hears what the nodes remember of this database. */
  async #ask(row: Row): Promise<void> {
    const id = String(row.id);
    try {
      const remembered = await this.#options.marks.mark(markOf(id), 0);
      this.#known = { id, beat: Math.max(this.#knownOf(row)?.beat ?? 0, remembered) };
      [this.#isHeard, this.#unasked] = [true, undefined];
    } catch (error) {
      const mustAsk = this.#options.unreachable === "refuse" && this.#knownOf(row) === undefined;
      const why = `the lock could not be asked whether it is complete: ${error instanceof Error ? error.message : String(error)}`;
      [this.#isHeard, this.#unasked] = [false, mustAsk ? why : undefined];
    }
  }

  /**
   * Counts one, or keeps in the database that it lacks what is known here. Only while the nodes are
   * heard: beats that they do not remember could make up for those that were lost.
   */
  async #beat(): Promise<void> {
    const known = this.#known;
    if (known === undefined) return;
    this.#hasAcknowledged = false;
    const beat = await this.#options.count(known.beat);
    if (beat !== undefined) known.beat = Math.max(known.beat, beat);
    const remembered = beat === undefined ? undefined : await this.#options.marks.mark(markOf(known.id), beat).catch(() => undefined);
    if (remembered === undefined) this.#hasAcknowledged = true; // Tried again in a second.
  }
}
