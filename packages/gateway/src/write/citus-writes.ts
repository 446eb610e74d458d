// Fenced writes on tables that Citus distributes: the same condition and the same effect, one row at
// a time, in the two shapes that Citus sends as they are to the one worker that keeps the row:
// UPDATE, and INSERT of values. INSERT … SELECT is none of them: Citus would gather its rows on the
// coordinator and ask every worker. A write is a transaction of one row, which its worker commits
// without a second phase; only a transaction over several workers has one.
import { type Failure, isRace } from "../fence/failure.js";
import { type BoundStatement, type Reply, type Row, type Run, StatementError, type WriteConnection } from "../store/write-connection.js";
import { admits, type Explanation, type FencedRow, mayMakeRow, raiseIsAllowed, type StoredState } from "./condition.js";
import { documentsOf, mergedRows } from "./patches.js";
import type { FencedWrites, WritesForm } from "./plain-writes.js";
import {
  ANSWER_TOO_LARGE,
  answerColumns,
  arrayOf,
  effect,
  mostShownBytes,
  named,
  ONE_REQUEST,
  type QueuedRow,
  type Statement,
  valuesOf,
} from "./statement.js";

const STATEMENT_TIMED_OUT = "57014";
const NAME = "palisade-citus-write";
/**
 * How often a patch is merged in one transaction: one that has lost a race is ahead of the next
 * transaction of who won it, and would be behind in a transaction of its own.
 */
const MERGES = 4;
/** Names on as many shards as chance has it, for the case that a worker is away. */
const REHEARSALS = 4;
const STATES = named(
  "palisade-citus-states",
  "select resource, token, seq, rev, deleted from palisade.resources where resource = any($1::text[])",
);
const RECORD = named(
  "palisade-citus-record",
  "insert into palisade.history (rev, token, seq, written_at, resource, op, holder) values ($1, $2, $3, now(), $4, $5, $6)",
);

/** After those that every form answers: for the history. */
const returned = (form: WritesForm): string => `
  returning ${answerColumns}, stored.token, stored.seq, stored.op, stored.holder,
    palisade.demand_durability(stored.resource, '${form.durability}')`;

/** For a row that is known, or may not be made: it finds none that is not there. */
const updateText = (form: WritesForm): string => `
  update palisade.resources as stored set ${effect("request")}
  from ${ONE_REQUEST}
  where stored.resource = $1 and ${raiseIsAllowed("stored")} and ${admits("stored", "request")}${returned(form)}`;

/** For a row that may be made, if it is not there. */
const upsertText = (form: WritesForm): string => `
  insert into palisade.resources as stored (resource, token, seq, rev, born, op, expected, deleted, holder, value, updated_at)
  values ($1::text, $2::bigint, $3::bigint, $8::bigint, $8::bigint, $4::text, $5::bigint, $7::jsonb is null, $6::text, $7::jsonb, now())
  on conflict (resource) do update set ${effect("excluded")}
  where ${admits("stored", "excluded")}${returned(form)}`;

/** Made for a batch, before anybody knew that the tables are distributed: each of its writes goes by itself. */
const oneByOne: Failure = { kind: "retry", code: "race", error: new Error("a write on Citus is one row") };

const tooMuchShown: Failure = {
  kind: "retry_alone",
  code: ANSWER_TOO_LARGE,
  error: new Error("the sealed documents are too large for one answer"),
};

export class CitusWrites implements FencedWrites {
  readonly #form: WritesForm;
  readonly #update: Statement;
  readonly #upsert: Statement;

  constructor(form: WritesForm) {
    this.#form = form;
    this.#update = named("palisade-citus-update", updateText(form));
    this.#upsert = named("palisade-citus-upsert", upsertText(form));
  }

  async each(connection: WriteConnection, [row, ...others]: readonly QueuedRow[]): Promise<Reply> {
    if (row === undefined || others.length > 0 || row.fold.length > 0) return { failure: oneByOne };
    return await connection.transaction(NAME, (run) => this.#write(run, row, row.known));
  }

  /** In the order of the names, which is the same in every gateway. */
  all(connection: WriteConnection, rows: readonly FencedRow[]): Promise<Reply> {
    return connection.transaction(NAME, async (run) => {
      const accepted: Row[] = [];
      let [shown, documents] = [0, 0];
      for (const row of rows) {
        const written = await this.#write(run, row, false);
        if (written === undefined) return undefined;
        accepted.push(...written);
        const document = row.request.op === "seal" ? written[0]?.[4] : undefined;
        if (typeof document !== "string") continue;
        shown += document.length;
        documents += 1;
        if (documents > 1 && shown > mostShownBytes(this.#form.documentLimitBytes)) throw new StatementError(tooMuchShown);
      }
      return accepted;
    });
  }

  /** Undefined where it was refused. */
  async #write(run: Run, asked: FencedRow, isKnown: boolean): Promise<readonly Row[] | undefined> {
    let row: FencedRow | undefined;
    let written: readonly Row[] = [];
    for (let merges = 1; written.length === 0 && merges <= (asked.request.op === "patch" ? MERGES : 1); merges += 1) {
      [row] = await mergedRows(run, [asked], this.#form.documentLimitBytes);
      if (row === undefined) return undefined;
      written = await run(this.#statementFor(row, isKnown));
    }
    const [[resource, rev, , , , token, seq, op, holder] = []] = written;
    if (row === undefined || resource === undefined) return undefined;
    if (this.#form.history === "on" && op !== "seal")
      await run({ ...RECORD, values: [rev, token, seq, resource, op, holder].map((value) => (value === null ? null : String(value))) });
    return documentsOf([row], written);
  }

  #statementFor(row: FencedRow, isKnown: boolean): BoundStatement {
    const values = valuesOf(row);
    if (isKnown || !mayMakeRow(row)) return { ...this.#update, values };
    return { ...this.#upsert, values: values.slice(0, -1) }; // Nobody needs to ask whether it was verified.
  }

  async explain(connection: WriteConnection, resources: readonly string[]): Promise<Explanation | { readonly failure: Failure }> {
    const reply = await connection.run({ ...STATES, values: [arrayOf(resources)] });
    if ("failure" in reply) return reply;
    const states = new Map(reply.rows.map((row) => [row[0], stateOf(row)]));
    // A worker that is not as durable as demanded fails the write itself.
    return { states: resources.map((resource) => states.get(resource)), isDurable: true };
  }

  /** The weakest lock of each row: its commit comes after the one in doubt. */
  async confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply> {
    if (this.#form.durability === "local") return { rows: [] };
    const text = `select resource, palisade.demand_durability(resource, '${this.#form.durability}') from palisade.resources
      where resource = $1::text for key share`;
    return await connection.transaction("palisade-citus-confirm", async (run) => {
      for (const resource of resources) await run({ name: "", text, values: [resource] });
      return [];
    });
  }

  /** Citus skips no locked rows: each is tried by itself. */
  async held(): Promise<readonly string[] | undefined> {
    return [];
  }

  /**
   * In a transaction that is undone, on a worker that answers. Where only a race was lost, the
   * statements can run.
   */
  async rehearse(connection: WriteConnection): Promise<string | undefined> {
    let fault = "";
    for (let attempt = 1; attempt <= REHEARSALS; attempt += 1) {
      const reply = await this.#rehearseOn(connection, `palisade/rehearsal/${attempt}`);
      if ("rows" in reply || ("code" in reply.failure && isRace(reply.failure.code))) return undefined;
      fault = reply.failure.error.message;
      if (!isOfWorker(reply.failure)) break;
    }
    return fault;
  }

  async #rehearseOn(connection: WriteConnection, resource: string): Promise<Reply> {
    const row: FencedRow = { request: { op: "put", resource, token: 1, value: "null" }, verified: true };
    return await connection.transaction("palisade-citus-rehearsal", async (run) => {
      await this.#write(run, row, true);
      await this.#write(run, row, false);
      await this.#write(run, { ...row, request: { ...row.request, op: "patch", value: "{}" } }, false);
      await run({ ...STATES, values: [arrayOf([resource])] });
      return undefined;
    });
  }
}

/** That it is away, or does not answer in time. */
function isOfWorker(failure: Failure): boolean {
  return "code" in failure ? failure.code === STATEMENT_TIMED_OUT : failure.reason === "unreachable";
}

function stateOf([, token, seq, rev, deleted]: Row): StoredState {
  return { token: Number(token), seq: Number(seq), rev: Number(rev), deleted: deleted === true };
}
