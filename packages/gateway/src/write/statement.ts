// The statement of every fenced write on plain Postgres: no other text of the gateway writes a
// resource there. (Distributed tables have their own, citus-writes.ts; in the database
// palisade.move_fence and palisade.guard move fences.) It compares the token with the stored fence
// under the lock of the row that it changes, and relies on nothing read before.
// Functions that take any type carry their schema: an overload in the search path could fit better.
// READ COMMITTED, no surrounding transaction but that of a patch; no advisory lock, trigger or xmax.
// All forms share the parameters, the condition (condition.ts) and the effect: for any resource or,
// cheaper, for those known to have a row; for a list of writes or, cheaper, for one. Each fails as a
// whole in a database that was restored: a fence may be missing there (G7).
import { createHash } from "node:crypto";
import type { Expected } from "../fence/verdict.js";
import { smallDocument } from "../store/reads.js";
import { beatDemand, durabilityDemand } from "../store/session.js";
import { admits, type FencedRow, passes, raiseIsAllowed } from "./condition.js";

/** A row of a batch. */
export interface QueuedRow extends FencedRow {
  /** The resource most likely has a row. */
  readonly known: boolean;
  /** Later puts that this row stands for as well; the last of them is what is stored. */
  readonly fold: readonly FencedRow[];
}

export interface StatementForm {
  /**
   * any: INSERT … ON CONFLICT. known: UPDATE, which finds nothing where there is no row, and needs
   * one look at the index instead of two.
   */
  readonly rows: "any" | "known";
  /**
   * each: a refused row does not affect the others. all: one refusal undoes everything. one: a
   * single write, whose parameters are values in place of arrays: two thirds of the cost.
   */
  readonly scope: "each" | "all" | "one";
  readonly history: "off" | "on";
  readonly durability: "local" | "sync";
  /** Of a document that is stored. */
  readonly documentLimitBytes: number;
}

export interface Statement {
  /**
   * Prepared once per connection under this name, which identifies the text: gateways with other
   * settings, or of another version, may share connections behind a pooler.
   */
  readonly name: string;
  readonly text: string;
  /** Its last parameter is the beat that the database must have. */
  readonly demandsBeat?: true;
}

const REQUEST = "request(resource, token, seq, op, expected, holder, value, revisions, verified)";
export const ONE_REQUEST = `(select $1::text, $2::bigint, $3::bigint, $4::text, $5::bigint, $6::text, $7::jsonb, $8::bigint, $9::boolean) as ${REQUEST}`;
const REQUESTS = `unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::jsonb[], $8::bigint[], $9::boolean[]) as ${REQUEST}`;

// A document that is replaced by the next one of its fold is parsed like all others and goes
// nowhere: one that Postgres cannot keep fails the statement. Only writes that go each by itself are
// folded.
const requests = ({ scope }: StatementForm): string =>
  scope === "one" ? ONE_REQUEST : scope === "all" ? REQUESTS : `(select $10::jsonb[]) as replaced, ${REQUESTS}`;

/**
 * What an accepted request makes of the row. op and expected are stored so that ON CONFLICT can see them, as
 * `excluded`. Citus sends on no case but searched ones.
 */
export const effect = (request: "request" | "excluded") => `
    token = ${request}.token,
    seq = case when ${request}.token > stored.token then ${request}.seq else greatest(stored.seq, ${request}.seq) end,
    rev = stored.rev + ${request === "excluded" ? "excluded.rev" : "request.revisions"},
    born = case when ${request}.op = 'put' and stored.deleted then stored.rev + 1 else stored.born end,
    op = ${request}.op,
    expected = ${request}.expected,
    deleted = case when ${request}.op = 'seal' then stored.deleted else ${request}.value is null end,
    holder = ${request}.holder,
    value = case
      when ${request}.op = 'seal' then stored.value
      else ${request}.value
    end,
    updated_at = ${request === "excluded" ? "excluded.updated_at" : "now()"}`;

const JOIN_SEEN_ROW = `left join lateral (
        select found.token, found.seq, found.rev, found.deleted from palisade.resources as found where found.resource = request.resource limit 1
      ) as seen on true`;

// Commits that do not wait for the disk or for a standby would be acknowledged all the same. Neither
// looks at a row, so Postgres asks both once for the statement.
const isFit = ({ durability, scope }: StatementForm): string =>
  `${durabilityDemand[durability]} and ${beatDemand(scope === "each" ? 11 : 10)}`;

function candidates(form: StatementForm): string {
  if (form.scope !== "all") return `${requests(form)} ${JOIN_SEEN_ROW}\n  where ${isFit(form)}\n    and ${passes}`;
  return `(
      select request.*, bool_and(${passes}) over () as all_pass from ${requests(form)} ${JOIN_SEEN_ROW}
    ) as request where all_pass and ${isFit(form)}`;
}

const upsert = (form: StatementForm): string => `
  insert into palisade.resources as stored
    (resource, token, seq, rev, born, op, expected, deleted, holder, value, updated_at)
  select request.resource, request.token, request.seq, request.revisions, least(request.revisions, 1),
    request.op, request.expected, request.value is null, request.holder, request.value, now()
  from ${candidates(form)}
  on conflict (resource) do update set ${effect("excluded")}
  where ${admits("stored", "excluded")}`;

const update = (form: StatementForm): string => `
  update palisade.resources as stored set ${effect("request")}
  from ${requests(form)}
  where stored.resource = request.resource
    and ${raiseIsAllowed("stored")}
    and ${admits("stored", "request")}
    and ${isFit(form)}`;

const sealedColumns = (document: string): string => `stored.resource, stored.rev, stored.born, stored.deleted,
    case when stored.op = 'seal' then ${document} end as value`;

/** With what a seal shows, however large: for a statement of one row. */
export const answerColumns = sealedColumns("stored.value::text");

/**
 * Of many rows none shows a large document: who has sealed it reads it by itself. Those of a
 * transaction are measured together before any is made text.
 */
const answered = ({ scope }: StatementForm): string => sealedColumns(scope === "all" ? "stored.value" : smallDocument("stored.value"));

/**
 * Of all documents that one transaction shows; the largest has at most one and a half times as much as
 * it came with. One alone may be larger: it was stored under another limit, and stays sealable.
 */
export const mostShownBytes = (documentLimitBytes: number): number => 2 * documentLimitBytes;
export const ANSWER_TOO_LARGE = "PLS12";

const recorded = (form: StatementForm): string => `recorded as (
  insert into palisade.history (rev, token, seq, written_at, resource, op, holder)
  select rev, token, seq, updated_at, resource, op, holder from written where op <> 'seal'${form.scope === "each" ? RECORD_FOLDED : ""}
)`;
const RECORD_FOLDED = `
  union all
  select rev - later, token, seq, updated_at, written.resource, op, holder
  from unnest($1::text[], $8::bigint[]) as folded(resource, revisions)
  join written on written.resource = folded.resource
  cross join pg_catalog.generate_series(1, folded.revisions - 1) as later
  where folded.revisions > 1`;

export function fencedWrite(form: StatementForm): Statement {
  return { ...named(`palisade-${form.rows}-${form.scope}`, textOf(form)), demandsBeat: true };
}

export function named(purpose: string, text: string): Statement {
  return { name: `${purpose}-${createHash("sha256").update(text).digest("hex").slice(0, 12)}`, text };
}

function textOf(form: StatementForm): string {
  const { rows, scope, history } = form;
  const write = rows === "any" ? upsert(form) : update(form);
  if (scope !== "all" && history === "off") return `${write}\n  returning ${answered(form)}`;
  const parts = [
    `written as (${write}\n  returning ${answered(form)}, stored.token, stored.seq, stored.op, stored.holder, stored.updated_at\n)`,
  ];
  if (history === "on") parts.push(recorded(form));
  if (scope !== "all") return `with ${parts.join(", ")}\nselect resource, rev, born, deleted, value from written`;
  return `with ${parts.join(", ")}
select case when count(*) over () < pg_catalog.cardinality($1::text[]) then palisade.refuse_all()
    when sum(pg_catalog.octet_length(value::text)) over (rows unbounded preceding) > ${mostShownBytes(form.documentLimitBytes)}
      and pg_catalog.count(value) over (rows unbounded preceding) > 1 then palisade.refuse_answer()
    else resource end, rev, born, deleted, value::text from written`;
}

/** The parameters of a single write, all but the beat. */
export function valuesOf({ request, verified }: FencedRow): (string | null)[] {
  const { resource, token, seq = 0, op, expected, holder = null, value = null } = request;
  const demanded = expected === undefined ? null : expectedNumber(expected);
  return [resource, String(token), String(seq), op, demanded, holder, value, op === "seal" ? "0" : "1", verified ? "t" : "f"];
}

/** The parameters of several, all but the beat. */
export function parametersOf(rows: readonly (FencedRow & Partial<QueuedRow>)[], scope: "each" | "all"): (string | Buffer)[] {
  const column = (element: (row: FencedRow & Partial<QueuedRow>) => string): string => `{${rows.map(element).join(",")}}`;
  const replaced: Document[] = [];
  for (const { request, fold = [] } of rows)
    for (const [index] of fold.entries()) replaced.push((fold[index - 1]?.request ?? request).value);
  return [
    column(({ request }) => quoted(request.resource)),
    column(({ request }) => String(request.token)),
    column(({ request }) => String(request.seq ?? 0)),
    column(({ request }) => request.op),
    column(({ request }) => expectedNumber(request.expected)),
    column(({ request }) => quotedOrNull(request.holder)),
    documentArray(rows.map(({ request, fold }) => (fold?.at(-1)?.request ?? request).value)),
    column(({ request, fold = [] }) => (request.op === "seal" ? "0" : String(1 + fold.length))),
    column(({ verified }) => (verified ? "t" : "f")),
    ...(scope === "each" ? [documentArray(replaced)] : []),
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

export function arrayOf(texts: readonly string[]): string {
  return `{${texts.map(quoted).join(",")}}`;
}

/** An element of an array literal. Always in quotes, so that the text null stays a text. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function quotedOrNull(text: string | undefined): string {
  return text === undefined ? "null" : quoted(text);
}
