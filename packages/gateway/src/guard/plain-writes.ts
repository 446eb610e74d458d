// Fenced writes on plain Postgres: each is one statement, prepared once per connection, and its
// parameters.
import type { Failure } from "../fence/failure.js";
import type { Expected } from "../fence/verdict.js";
import type { Durability } from "../store/session.js";
import type { BoundStatement, Reply, WriteConnection } from "../store/write-connection.js";
import { type FencedRow, fencedWrite, type Statement, type StatementForm } from "./fenced-statement.js";
import type { Asked, FencedWrites, Whole } from "./fenced-writes.js";
import { heldRows } from "./held-rows.js";
import { arrayOf, confirmation, type Explanation, explain, explanationOf, quoted } from "./refusal.js";
import type { Entry } from "./write-queue.js";

type Form = Pick<StatementForm, "history" | "durability" | "documentLimitBytes">;
interface Statements {
  readonly plain: Statement;
  readonly keyed: Statement;
}

export class PlainWrites implements FencedWrites {
  readonly #durability: Durability;
  readonly #single: Readonly<Record<"any" | "known", Readonly<Record<"one" | "each", Statements>>>>;
  readonly #whole: Readonly<Record<"any" | "known", Statements>>;

  constructor(form: Form) {
    const statements = (rows: "any" | "known", scope: "each" | "all" | "one"): Statements => ({
      plain: fencedWrite({ ...form, rows, scope, keys: "none" }),
      keyed: fencedWrite({ ...form, rows, scope, keys: "named" }),
    });
    const singles = (rows: "any" | "known") => ({ one: statements(rows, "one"), each: statements(rows, "each") });
    this.#durability = form.durability;
    this.#single = { any: singles("any"), known: singles("known") };
    this.#whole = { any: statements("any", "all"), known: statements("known", "all") };
  }

  each(connection: WriteConnection, batch: readonly Entry[]): Promise<Reply> {
    return connection.run(this.#statementFor(batch));
  }

  #statementFor(batch: readonly Entry[]): BoundStatement {
    // A write that is sent again may have come back because its resource has no row, although it
    // was remembered to have one: the cheaper statement would miss it again.
    const { one, each } = this.#single[batch.every(({ known, attempts }) => known && attempts === 0) ? "known" : "any"];
    const [first] = batch;
    const { idempotency } = first?.request ?? {};
    if (first !== undefined && batch.length === 1 && first.fold.length === 0) {
      if (idempotency === undefined) return { ...one.plain, values: valuesOf(first) };
      return { ...one.keyed, values: [...valuesOf(first), idempotency.key, idempotency.fingerprint] };
    }
    if (idempotency === undefined) return { ...each.plain, values: parametersOf(batch) };
    const keys = arrayOf(batch.map(({ request }) => request.idempotency?.key ?? ""));
    const fingerprints = arrayOf(batch.map(({ request }) => request.idempotency?.fingerprint ?? ""));
    return { ...each.keyed, values: [...columnsOf(batch), keys, fingerprints] };
  }

  all(connection: WriteConnection, rows: readonly FencedRow[], { idempotency, isLikely }: Whole): Promise<Reply> {
    const { plain, keyed } = this.#whole[isLikely ? "known" : "any"];
    const values = columnsOf(rows);
    if (idempotency === undefined) return connection.run({ ...plain, values });
    return connection.run({ ...keyed, values: [...values, idempotency.key, idempotency.fingerprint] });
  }

  async explain(connection: WriteConnection, { resources, keys }: Asked): Promise<Explanation | { readonly failure: Failure }> {
    const reply = await connection.run(explain(resources, keys, this.#durability));
    return "failure" in reply ? reply : explanationOf(reply.rows);
  }

  confirm(connection: WriteConnection, resources: readonly string[]): Promise<Reply> {
    return connection.run(confirmation(resources));
  }

  held(connection: WriteConnection, resources: readonly string[]): Promise<readonly string[] | undefined> {
    return heldRows(connection, resources);
  }

  async rehearse(connection: WriteConnection): Promise<string | undefined> {
    const { any, known } = this.#single;
    for (const { plain, keyed } of [any.one, any.each, known.one, known.each, this.#whole.any, this.#whole.known])
      for (const statement of [plain, keyed]) {
        const reply = await connection.run({ ...statement, values: nothingFor(statement) });
        if ("failure" in reply) return `${statement.name}: ${reply.failure.error.message}`;
      }
    return undefined;
  }
}

/**
 * Nothing to write: no rows, or a write without a name and a token. The keys of a batch are arrays;
 * a single write and a transaction have one key.
 */
function nothingFor({ name, text }: Statement): (string | Buffer | null)[] {
  if (text.includes("$10::jsonb[]")) return parametersOf([]);
  const first = text.includes("$7::jsonb[]") ? columnsOf([]) : Array.from({ length: 8 }, () => null);
  if (!text.includes("$10")) return first;
  return text.includes("$10::text[]") ? [...first, "{}", "{}"] : [...first, name, name];
}

/** The first eight parameters of a single write. */
export function valuesOf({ request, verified }: FencedRow): (string | null)[] {
  const { resource, token, seq = 0, op, expected, holder = null, value = null } = request;
  const demanded = expected === undefined ? null : expectedNumber(expected);
  return [resource, String(token), String(seq), op, demanded, holder, value, verified ? "t" : "f"];
}

/** The parameters of plain writes. */
export function parametersOf(rows: readonly FencedRow[]): (string | Buffer)[] {
  const revisions = rows.map(({ request, fold = [] }) => (request.op === "seal" ? 0 : 1 + fold.length));
  const replaced: Document[] = [];
  for (const { request, fold = [] } of rows)
    for (const [index] of fold.entries()) replaced.push((fold[index - 1]?.request ?? request).value);
  return [...columnsOf(rows), `{${revisions.join(",")}}`, documentArray(replaced)];
}

/** The first eight parameters of the other forms: one array per column. */
export function columnsOf(rows: readonly FencedRow[]): (string | Buffer)[] {
  const column = (element: (row: FencedRow) => string): string => `{${rows.map(element).join(",")}}`;
  return [
    column(({ request }) => quoted(request.resource)),
    column(({ request }) => String(request.token)),
    column(({ request }) => String(request.seq ?? 0)),
    column(({ request }) => request.op),
    column(({ request }) => expectedNumber(request.expected)),
    column(({ request }) => quotedOrNull(request.holder)),
    documentArray(rows.map(({ request, fold }) => (fold?.at(-1)?.request ?? request).value)),
    column(({ verified }) => (verified ? "t" : "f")),
  ];
}

type Document = string | undefined;

const JSONB_OID = 3_802;
const JSONB_VERSION = 1;

/**
 * A jsonb[] as Postgres receives it in binary. In an array literal every quote in a document would
 * be escaped here and unescaped there, which costs more than all else that is done to a large one.
 */
function documentArray(documents: readonly Document[]): Buffer {
  const sizes = documents.map((document) => (document === undefined ? -1 : 1 + Buffer.byteLength(document)));
  const head = documents.length === 0 ? 12 : 20;
  const bytes = Buffer.allocUnsafe(sizes.reduce((sum, size) => sum + 4 + Math.max(0, size), head));
  // Dimensions, whether there are nulls, type; then the length of the one dimension and its first
  // index.
  const heads = [documents.length === 0 ? 0 : 1, sizes.includes(-1) ? 1 : 0, JSONB_OID, documents.length, 1].slice(0, head / 4);
  let at = heads.reduce((offset, number) => bytes.writeInt32BE(number, offset), 0);
  for (const [index, document] of documents.entries()) {
    at = bytes.writeInt32BE(sizes[index] ?? -1, at);
    if (document === undefined) continue;
    at = bytes.writeInt8(JSONB_VERSION, at);
    at += bytes.write(document, at);
  }
  return bytes;
}

function expectedNumber(expected: Expected | undefined): string {
  if (expected === undefined) return "null";
  return expected === "absent" ? "0" : expected === "present" ? "-1" : String(expected);
}

function quotedOrNull(text: string | undefined): string {
  return text === undefined ? "null" : quoted(text);
}
