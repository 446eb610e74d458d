// Fenced writes on plain Postgres: each is one statement, prepared once per connection, and its
// parameters; only patches need a transaction of two.
import type { Failure } from "../fence/failure.js";
import { type Durability, durabilityDemand, type Work } from "../store/session.js";
import type { BoundStatement, Reply, Row, WriteConnection } from "../store/write-connection.js";
import { documentsOf, isPatch, mergedRows, rehearsedPatch } from "./patches.js";
import type { Explanation } from "./refusal.js";
import {
  arrayOf,
  columnsOf,
  type FencedRow,
  type FencedWrites,
  fencedWrite,
  named,
  parametersOf,
  type QueuedRow,
  type Statement,
  type StatementForm,
  valuesOf,
} from "./statement.js";

// What is asked after the statement has refused: one line per resource.
const explainFor = (durability: Durability): Statement =>
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
const EXPLAIN: Readonly<Record<Durability, Statement>> = { local: explainFor("local"), sync: explainFor("sync") };

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

/** What a store writes its rows by. */
export interface WritesForm extends Pick<StatementForm, "history" | "durability"> {
  /** Of the document that a patch makes. */
  readonly documentLimitBytes: number;
}

export class PlainWrites implements FencedWrites {
  readonly #durability: Durability;
  readonly #documentLimitBytes: number;
  readonly #statements: Readonly<Record<StatementForm["rows"], Readonly<Record<StatementForm["scope"], Statement>>>>;

  constructor(form: WritesForm) {
    const of = (rows: StatementForm["rows"]) => ({
      one: fencedWrite({ ...form, rows, scope: "one" }),
      each: fencedWrite({ ...form, rows, scope: "each" }),
      all: fencedWrite({ ...form, rows, scope: "all" }),
    });
    this.#durability = form.durability;
    this.#documentLimitBytes = form.documentLimitBytes;
    this.#statements = { any: of("any"), known: of("known") };
  }

  each(connection: WriteConnection, batch: readonly QueuedRow[]): Promise<Reply> {
    if (!batch.some(isPatch)) return connection.run(this.#statementFor(batch));
    return this.#patch(connection, async (run) => {
      const rows = await mergedRows(run, batch, this.#documentLimitBytes);
      return rows.length === 0 ? undefined : documentsOf(rows, await run(this.#statementFor(rows)));
    });
  }

  #statementFor(batch: readonly QueuedRow[]): BoundStatement {
    // A write that is sent again may have come back because its resource has no row, although it
    // was remembered to have one: the cheaper statement would miss it again.
    const { one, each } = this.#statements[batch.every(({ known, attempts }) => known && attempts === 0) ? "known" : "any"];
    const [first] = batch;
    const isOne = first !== undefined && batch.length === 1 && first.fold.length === 0;
    return isOne ? { ...one, values: valuesOf(first) } : { ...each, values: parametersOf(batch) };
  }

  all(connection: WriteConnection, rows: readonly FencedRow[], isLikely: boolean): Promise<Reply> {
    const { all } = this.#statements[isLikely ? "known" : "any"];
    if (!rows.some(isPatch)) return connection.run({ ...all, values: columnsOf(rows) });
    return this.#patch(connection, async (run) => {
      const merged = await mergedRows(run, rows, this.#documentLimitBytes);
      return merged.length < rows.length ? undefined : documentsOf(merged, await run({ ...all, values: columnsOf(merged) }));
    });
  }

  #patch(connection: WriteConnection, work: Work): Promise<Reply> {
    return connection.transaction("palisade-patch", work);
  }

  async explain(connection: WriteConnection, resources: readonly string[]): Promise<Explanation | { readonly failure: Failure }> {
    const reply = await connection.run({ ...EXPLAIN[this.#durability], values: [arrayOf(resources)] });
    return "failure" in reply ? reply : explanationOf(reply.rows);
  }

  confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply> {
    return connection.run({ ...CONFIRM, values: [arrayOf(resources)] });
  }

  async held(connection: WriteConnection, resources: readonly string[]): Promise<readonly string[] | undefined> {
    const reply = await connection.run({ ...HELD, values: [arrayOf(resources)] });
    return "rows" in reply ? reply.rows.map(([resource]) => String(resource)) : undefined;
  }

  async rehearse(connection: WriteConnection): Promise<string | undefined> {
    // No rows, or a write without a name and a token.
    const nothing = { one: Array.from({ length: 8 }, () => null), each: parametersOf([]), all: columnsOf([]) };
    for (const { one, each, all } of [this.#statements.any, this.#statements.known])
      for (const statement of [
        { ...one, values: nothing.one },
        { ...each, values: nothing.each },
        { ...all, values: nothing.all },
      ]) {
        const reply = await connection.run(statement);
        if ("failure" in reply) return `${statement.name}: ${reply.failure.error.message}`;
      }
    const reply = await this.#patch(connection, async (run) => await mergedRows(run, [rehearsedPatch], 0).then(() => undefined));
    return "failure" in reply ? `palisade-patch: ${reply.failure.error.message}` : undefined;
  }
}
