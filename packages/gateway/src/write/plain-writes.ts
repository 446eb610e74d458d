// How fenced writes are put to an engine, and how to plain Postgres: each is one statement, prepared
// once per connection, and its parameters; only patches need a transaction of two. Decisions about
// retries and answers are made by the callers, and are the same for every engine.
import type { Failure } from "../fence/failure.js";
import { type Durability, durabilityDemand } from "../store/session.js";
import type { BoundStatement, Reply, Row, WriteConnection } from "../store/write-connection.js";
import type { Enquiry, Explanation, FencedRow } from "./condition.js";
import { documentsOf, isPatch, mergedRows, rehearsedPatch } from "./patches.js";
import { arrayOf, fencedWrite, named, parametersOf, type QueuedRow, type Statement, type StatementForm, valuesOf } from "./statement.js";

export interface FencedWrites extends Enquiry {
  /** Each row by itself. Answers resource, revision, born, deleted and value of the accepted. */
  each(connection: WriteConnection, batch: readonly QueuedRow[]): Promise<Reply>;
  /**
   * All rows or none, sorted by name; no row is answered where one was refused. `isLikely`: each row
   * is there and most likely admits its write, so it need not be looked at before any is written. A
   * refusal then locks rows and writes WAL until it undoes both.
   */
  all(connection: WriteConnection, rows: readonly FencedRow[], isLikely: boolean): Promise<Reply>;
  /** Which rows other sessions hold; undefined when that cannot be found out. */
  held(connection: WriteConnection, resources: readonly string[]): Promise<readonly string[] | undefined>;
  /** Runs every statement without an effect; why one cannot run. */
  rehearse(connection: WriteConnection): Promise<string | undefined>;
}

/** What a store writes its rows by. */
export type WritesForm = Pick<StatementForm, "history" | "durability" | "documentLimitBytes">;

// What is asked after the statement has refused: one line per resource.
const explain = (durability: Durability): Statement =>
  named(
    "palisade-explain",
    `
  select coalesce(seen.token, nullif(lineage.fence_floor, 0)), seen.seq, seen.rev, coalesce(seen.deleted, true), ${durabilityDemand[durability]}
  from unnest($1::text[]) with ordinality as asked(resource, place) cross join palisade.lineage
  left join lateral (
    select token, seq, rev, deleted from palisade.resources as found where found.resource = asked.resource limit 1
  ) as seen on true
  order by place`,
  );

function explanationOf(rows: readonly Row[]): Explanation {
  const states = rows.map(([token, seq, rev, deleted]) =>
    typeof token === "number" ? { token, seq: Number(seq), rev: Number(rev), deleted: deleted === true, isFloor: seq === null } : undefined,
  );
  return { states, isDurable: rows[0]?.[4] === true };
}

// The weakest row lock: it blocks no write and changes nothing, and its commit comes after the one
// in doubt and waits for the standby like any other.
const CONFIRM = named(
  "palisade-confirm",
  `select ${durabilityDemand.sync} from palisade.resources where resource = any($1::text[]) order by resource for key share`,
);

// Which rows of a statement that waited too long are held by other sessions. Asked on the failure
// path only: one statement, however many they are, so that the others need not be tried one by one.
// Takes the lock of a write on every free row, for the length of this statement. A row that is
// being created is not seen.
const HELD = named(
  "palisade-held",
  `
  with free as (
    select resource from palisade.resources where resource = any($1::text[]) for no key update skip locked
  )
  select resource from palisade.resources where resource = any($1::text[]) and resource not in (select resource from free)`,
);

export class PlainWrites implements FencedWrites {
  readonly #form: WritesForm;
  readonly #explain: Statement;
  readonly #statements: Readonly<Record<StatementForm["rows"], Readonly<Record<StatementForm["scope"], Statement>>>>;

  constructor(form: WritesForm) {
    const of = (rows: StatementForm["rows"]) => ({
      one: fencedWrite({ ...form, rows, scope: "one" }),
      each: fencedWrite({ ...form, rows, scope: "each" }),
      all: fencedWrite({ ...form, rows, scope: "all" }),
    });
    this.#form = form;
    this.#explain = explain(form.durability);
    this.#statements = { any: of("any"), known: of("known") };
  }

  each(connection: WriteConnection, batch: readonly QueuedRow[]): Promise<Reply> {
    const { one, each } = this.#statements[batch.every(({ known }) => known) ? "known" : "any"];
    const statementFor = (rows: readonly QueuedRow[]): BoundStatement => {
      const [first] = rows;
      const isOne = first !== undefined && rows.length === 1 && first.fold.length === 0;
      return isOne ? { ...one, values: valuesOf(first) } : { ...each, values: parametersOf(rows, "each") };
    };
    if (!batch.some(isPatch)) return connection.run(statementFor(batch));
    return this.#patch(connection, batch, (rows) => (rows.length === 0 ? undefined : statementFor(rows)));
  }

  all(connection: WriteConnection, rows: readonly FencedRow[], isLikely: boolean): Promise<Reply> {
    const { all } = this.#statements[isLikely ? "known" : "any"];
    if (!rows.some(isPatch)) return connection.run({ ...all, values: parametersOf(rows, "all") });
    return this.#patch(connection, rows, (merged) =>
      merged.length < rows.length ? undefined : { ...all, values: parametersOf(merged, "all") },
    );
  }

  /** Without a statement for the rows that are left, nothing is stored. */
  #patch<R extends FencedRow>(
    connection: WriteConnection,
    rows: readonly R[],
    statementFor: (merged: readonly R[]) => BoundStatement | undefined,
  ): Promise<Reply> {
    return connection.transaction("palisade-patch", async (run) => {
      const merged = await mergedRows(run, rows, this.#form.documentLimitBytes);
      const statement = statementFor(merged);
      return statement && documentsOf(merged, await run(statement));
    });
  }

  async explain(connection: WriteConnection, resources: readonly string[]): Promise<Explanation | { readonly failure: Failure }> {
    const reply = await connection.run({ ...this.#explain, values: [arrayOf(resources)] });
    return "failure" in reply ? reply : explanationOf(reply.rows);
  }

  async confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply> {
    if (this.#form.durability === "local") return { rows: [] };
    return await connection.run({ ...CONFIRM, values: [arrayOf(resources)] });
  }

  async held(connection: WriteConnection, resources: readonly string[]): Promise<readonly string[] | undefined> {
    const reply = await connection.run({ ...HELD, values: [arrayOf(resources)] });
    return "rows" in reply ? reply.rows.map(([resource]) => String(resource)) : undefined;
  }

  /** Of no rows, or of a write without a name and a token. */
  async rehearse(connection: WriteConnection): Promise<string | undefined> {
    for (const { one, each, all } of [this.#statements.any, this.#statements.known])
      for (const statement of [
        { ...one, values: Array.from({ length: 9 }, () => null) },
        { ...each, values: parametersOf([], "each") },
        { ...all, values: parametersOf([], "all") },
      ]) {
        const reply = await connection.run(statement);
        if ("failure" in reply) return `${statement.name}: ${reply.failure.error.message}`;
      }
    const reply = await this.all(connection, [rehearsedPatch], false);
    return "failure" in reply ? `palisade-patch: ${reply.failure.error.message}` : undefined;
  }
}
