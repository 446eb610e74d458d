// The statement of every fenced write; nothing else writes a resource. It compares the token with
// the stored fence under the lock of the row that it changes, and relies on nothing read before.
// Functions that take any type carry their schema: an overload in the search path could fit better.
// READ COMMITTED, no surrounding transaction; no advisory lock, trigger or xmax. All forms share
// the condition and the effect: for any resource or, cheaper, for those known to have a row; for a
// list of writes or, cheaper, for one. Distributed tables have their own: citus-statement.ts.
import { createHash } from "node:crypto";
import type { TransactionOperation } from "../fence/verdict.js";
import { durabilityDemand } from "../store/session.js";

export interface FencedRow {
  readonly request: TransactionOperation;
  /**
   * The lock issued the token, or tokens are not verified. Otherwise the row is accepted only where
   * it does not raise the fence.
   */
  readonly verified: boolean;
  /** Later puts that this row stands for as well; the last of them is what is stored. */
  readonly fold?: readonly Pick<FencedRow, "request">[] | undefined;
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
  /** named: each row (scope each) or the whole (scopes all and one) carries an idempotency key. */
  readonly keys: "none" | "named";
  readonly history: "off" | "on";
  readonly durability: "local" | "sync";
  /** What a patch may make of a document, in bytes as it is answered. */
  readonly documentLimitBytes: number;
}

export interface Statement {
  /**
   * Prepared once per connection under this name, which identifies the text: gateways with other
   * settings, or of another version, may share connections behind a pooler.
   */
  readonly name: string;
  readonly text: string;
}

// The fence. Postgres evaluates it twice, for two versions of the same row:
// - The version in the statement's snapshot (`seen`, or the row that UPDATE finds), so that a
//   refusal locks nothing, writes no WAL and waits for no standby. That version may be old, and an
//   old version can justify refusing, never accepting: tokens only rise.
// - The version that is locked (`stored`: by ON CONFLICT, or by UPDATE after a concurrent change).
//   This is the one that counts (G1): it is the newest, and the row cannot change before this
//   statement commits. The fence must therefore live in this row: read from another table, it would
//   come from the snapshot, and token 34 would overwrite what token 35 wrote.
export const admits = (row: "seen" | "stored", request: "request" | "excluded") => `
      ${row}.token <= ${request}.token
      and (${row}.token < ${request}.token or ${request}.seq = 0 or ${row}.seq < ${request}.seq)
      and (${request}.expected is null
        or ${request}.expected = 0 and ${row}.deleted
        or ${request}.expected in (-1, ${row}.rev) and not ${row}.deleted)
      and (${request}.op in ('put', 'seal') or not ${row}.deleted)`;

export const raisesNothing = (row: "seen" | "stored") => `(request.verified or request.token <= ${row}.token)`;

/**
 * How many revisions an accepted request adds. Only plain writes are folded: with a key or in a
 * transaction each has an answer or a condition of its own.
 */
const revisionsOf = (form: StatementForm) => (mayFold(form) ? "request.revisions" : "case when request.op = 'seal' then 0 else 1 end");
const mayFold = ({ scope, keys }: StatementForm): boolean => scope === "each" && keys === "none";

/** What an accepted request makes of the row. Citus sends on no case but searched ones. */
export const effect = (request: "request" | "excluded", revisions: string) => `
    token = ${request}.token,
    seq = case when ${request}.token > stored.token then ${request}.seq else greatest(stored.seq, ${request}.seq) end,
    rev = stored.rev + ${revisions},
    born = case when ${request}.op = 'put' and stored.deleted then stored.rev + 1 else stored.born end,
    op = ${request}.op,
    expected = ${request}.expected,
    deleted = case when ${request}.op = 'seal' then stored.deleted else ${request}.value is null end,
    holder = ${request}.holder,
    value = case
      when ${request}.op = 'seal' then stored.value
      when ${request}.op = 'patch' then palisade.merge_patch(stored.value, ${request}.value)
      else ${request}.value
    end,
    updated_at = ${request === "excluded" ? "excluded.updated_at" : "now()"}`;

/**
 * The condition on the snapshot. Without a row there is nothing to patch, delete or match; and a
 * resource that has a row keeps it for ever.
 */
const passes = `
    case when seen.token is null
      then request.verified and request.op in ('put', 'seal') and coalesce(request.expected, 0) = 0
      else ${raisesNothing("seen")} and ${admits("seen", "request")}
    end`;

/**
 * One line per request, in the order of the arrays. They come sorted by name, so that two
 * statements cannot deadlock.
 */
const requests = (form: StatementForm): string => {
  const list = (parameters: string, columns: string): string =>
    `unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::jsonb[], $8::boolean[]${parameters})
        as request(resource, token, seq, op, expected, holder, value, verified${columns})`;
  if (form.scope === "one")
    return `(select $1::text, $2::bigint, $3::bigint, $4::text, $5::bigint, $6::text, $7::jsonb, $8::boolean)
        as request(resource, token, seq, op, expected, holder, value, verified)`;
  if (form.scope === "all") return list("", "");
  if (!mayFold(form)) return list(", $9::text[], $10::text[]", ", key, fingerprint");
  // A document that is replaced by the next one of its fold is parsed like all others and goes
  // nowhere: one that Postgres cannot keep fails the statement.
  return `(select $10::jsonb[]) as replaced, ${list(", $9::bigint[]", ", revisions")}`;
};

const JOIN_SEEN_ROW = `left join lateral (
        select found.token, found.seq, found.rev, found.deleted from palisade.resources as found where found.resource = request.resource limit 1
      ) as seen on true`;

/** What else must hold for the statement to write anything: once, or for each request. */
function extraConditions({ scope, keys, durability }: StatementForm): { readonly once: string; readonly each: readonly string[] } {
  return {
    // Commits that do not wait for the disk or for a standby would be acknowledged all the same.
    once: durabilityDemand[durability],
    each:
      keys === "named"
        ? [`not exists (select from palisade.used_keys as used where used.key = ${scope === "each" ? "request.key" : "$9::text"})`]
        : [],
  };
}

function candidates(form: StatementForm): string {
  const { once, each } = extraConditions(form);
  const condition = [passes, ...each].join("\n    and ");
  if (form.scope !== "all") return `${requests(form)} ${JOIN_SEEN_ROW}\n  where ${once}\n    and ${condition}`;
  return `(
      select request.*, bool_and(${condition}) over () as all_pass from ${requests(form)} ${JOIN_SEEN_ROW}
    ) as request where all_pass and ${once}`;
}

const upsert = (form: StatementForm): string => `
  insert into palisade.resources as stored
    (resource, token, seq, rev, born, op, expected, deleted, holder, value, updated_at)
  select request.resource, request.token, request.seq, ${revisionsOf(form)}, case when request.op = 'seal' then 0 else 1 end,
    request.op, request.expected, request.value is null, request.holder, request.value, now()
  from ${candidates(form)}
  on conflict (resource) do update set ${effect("excluded", "excluded.rev")}
  where ${admits("stored", "excluded")}`;

const update = (form: StatementForm): string => {
  const { once, each } = extraConditions(form);
  return `
  update palisade.resources as stored set ${effect("request", revisionsOf(form))}
  from ${requests(form)}
  where ${["stored.resource = request.resource", raisesNothing("stored"), admits("stored", "request"), once, ...each].join("\n    and ")}`;
};

type Limited = Pick<StatementForm, "documentLimitBytes">;
export const answerColumns = ({ documentLimitBytes }: Limited): string => `stored.resource, stored.rev, stored.born, stored.deleted,
    case
      when stored.op = 'patch' then palisade.within_limit(stored.value::text, ${documentLimitBytes}, stored.resource)
      when stored.op = 'seal' then stored.value::text
    end as value`;

const recorded = (form: StatementForm): string => `recorded as (
  insert into palisade.history (rev, token, seq, written_at, resource, op, holder)
  select rev, token, seq, updated_at, resource, op, holder from written where op <> 'seal'${mayFold(form) ? RECORD_FOLDED : ""}
)`;
const RECORD_FOLDED = `
  union all
  select rev - later, token, seq, updated_at, written.resource, op, holder
  from unnest($1::text[], $9::bigint[]) as folded(resource, revisions)
  join written on written.resource = folded.resource
  cross join pg_catalog.generate_series(1, folded.revisions - 1) as later
  where folded.revisions > 1`;

// If another connection is using the key right now, this insert waits and then fails the whole
// statement with 23505: nothing is written twice.
const outcome = (row: string) =>
  `pg_catalog.jsonb_build_object('rev', ${row}.rev, 'token', ${row}.token, 'created', ${row}.op = 'put' and ${row}.born = ${row}.rev, 'deleted', ${row}.deleted, 'value', ${row}.value)`;
const remembered = {
  each: `remembered as (
  insert into palisade.used_keys (used_at, key, fingerprint, outcome)
  select written.updated_at, named.key, named.fingerprint, pg_catalog.jsonb_build_object(written.resource, ${outcome("written")})
  from written join unnest($1::text[], $9::text[], $10::text[]) as named(resource, key, fingerprint) on named.resource = written.resource
)`,
  one: `remembered as (
  insert into palisade.used_keys (used_at, key, fingerprint, outcome)
  select written.updated_at, $9::text, $10::text, pg_catalog.jsonb_build_object(written.resource, ${outcome("written")}) from written
)`,
  all: `remembered as (
  insert into palisade.used_keys (used_at, key, fingerprint, outcome)
  select now(), $9::text, $10::text, pg_catalog.jsonb_object_agg(written.resource, ${outcome("written")})
  from written having count(*) > 0 and count(*) = pg_catalog.cardinality($1::text[])
)`,
};

export function fencedWrite(form: StatementForm): Statement {
  const { rows, scope, keys } = form;
  return named(`palisade-${rows}-${scope}-${keys}`, textOf(form));
}

export function named(purpose: string, text: string): Statement {
  return { name: `${purpose}-${createHash("sha256").update(text).digest("hex").slice(0, 12)}`, text };
}

function textOf(form: StatementForm): string {
  const { rows, scope, keys, history } = form;
  const write = rows === "any" ? upsert(form) : update(form);
  if (scope !== "all" && keys === "none" && history === "off") return `${write}\n  returning ${answerColumns(form)}`;
  const parts = [
    `written as (${write}\n  returning ${answerColumns(form)}, stored.token, stored.seq, stored.op, stored.holder, stored.updated_at\n)`,
  ];
  if (history === "on") parts.push(recorded(form));
  if (keys === "named") parts.push(remembered[scope]);
  const first =
    scope !== "all"
      ? "resource"
      : "case when count(*) over () = pg_catalog.cardinality($1::text[]) then resource else palisade.refuse_all() end";
  return `with ${parts.join(", ")}\nselect ${first}, rev, born, deleted, value from written`;
}
