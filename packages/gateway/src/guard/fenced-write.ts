// THE statement: every fenced write is this one, and nothing else writes a resource. It decides alone, under the lock of the row it changes; nothing was read before
// it that it relies on. READ COMMITTED, no surrounding transaction. No advisory lock, trigger or xmax, so that it runs wherever INSERT … ON CONFLICT does.
import type { Expected, TransactionOperation } from "./verdict.js";

export interface FencedRow {
  readonly request: TransactionOperation;
  /** The lock's nodes know the token, or nobody is asked. Otherwise the row is accepted only where it does not raise the fence. */
  readonly verified: boolean;
}

export interface StatementForm {
  /** each: a refused row leaves its neighbours alone. all: one refusal undoes everything. */
  readonly scope: "each" | "all";
  /** named: each row (scope each) or the whole (scope all) carries an idempotency key. */
  readonly keys: "none" | "named";
  readonly history: "off" | "on";
  readonly durability: "local" | "sync";
}

export interface Statement {
  /** Prepared once per connection under this name. */
  readonly name: string;
  readonly text: string;
}

// The fence. It is asked twice, of two versions of the same row:
// - of `seen`, the version in the statement's snapshot, so that a refusal locks nothing, writes no WAL and waits for no standby. That version may be old, and an old
//   version may justify refusing, never accepting: tokens only rise.
// - of `stored`, the version that ON CONFLICT has just locked. This is the one that counts (G1): Postgres evaluates it once, on the newest version, and nobody can
//   change the row before this statement commits. The fence must therefore live in this row: read from another table, it would come from the snapshot, and token 34
//   would overwrite what token 35 wrote.
const admits = (row: "seen" | "stored", request: "request" | "excluded") => `
      ${row}.token <= ${request}.token
      and (${row}.token < ${request}.token or ${request}.seq = 0 or ${row}.seq < ${request}.seq)
      and (${request}.expected is null
        or ${request}.expected = 0 and ${row}.deleted
        or ${request}.expected in (-1, ${row}.rev) and not ${row}.deleted)
      and (${request}.op in ('put', 'seal') or not ${row}.deleted)`;

/** What the snapshot lets through. Without a row there is nothing to patch, delete or match; and a resource that has a row keeps it for ever. */
const passes = `
    case when seen.token is null
      then request.verified and request.op in ('put', 'seal') and coalesce(request.expected, 0) = 0
      else (request.verified or request.token <= seen.token) and ${admits("seen", "request")}
    end`;

/** One index look-up per row, in the order of the arrays: they come sorted by name, so that no two statements wait for each other in a circle. */
const requested = (keyed: { readonly parameters: string; readonly columns: string }): string => `
      unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::jsonb[], $8::boolean[]${keyed.parameters})
        as request(resource, token, seq, op, expected, holder, value, verified${keyed.columns})
      left join lateral (
        select found.token, found.seq, found.rev, found.deleted from palisade.resources as found where found.resource = request.resource limit 1
      ) as seen on true`;
const withoutKeys = requested({ parameters: "", columns: "" });
const withKeys = requested({ parameters: ", $9::text[], $10::text[]", columns: ", key, fingerprint" });

function accepted({ scope, keys, durability }: StatementForm): string {
  const conditions = [passes];
  // The setting can be emptied while we are connected; commits would then return without waiting for anybody.
  if (durability === "sync") conditions.push("current_setting('synchronous_standby_names') <> ''");
  if (keys === "named") {
    const key = scope === "each" ? "request.key" : "$9::text";
    conditions.push(`not exists (select from palisade.used_keys as used where used.key = ${key})`);
  }
  const condition = conditions.join("\n    and ");
  if (scope === "all") {
    return `(select * from (
      select request.*, bool_and(${condition}) over () as all_pass from ${withoutKeys}
    ) as candidate where all_pass) as request`;
  }
  return `(
    select request.* from ${keys === "none" ? withoutKeys : withKeys}
    where ${condition}
  ) as request`;
}

const upsert = (form: StatementForm): string => `
  insert into palisade.resources as stored
    (resource, token, seq, rev, born, op, expected, deleted, holder, value, updated_at)
  select resource, token, seq, case op when 'seal' then 0 else 1 end, case op when 'seal' then 0 else 1 end, op, expected, value is null, holder, value, now()
  from ${accepted(form)}
  on conflict (resource) do update set
    token = excluded.token,
    seq = case when excluded.token > stored.token then excluded.seq else greatest(stored.seq, excluded.seq) end,
    rev = stored.rev + case excluded.op when 'seal' then 0 else 1 end,
    born = case when excluded.op = 'put' and stored.deleted then stored.rev + 1 else stored.born end,
    op = excluded.op,
    expected = excluded.expected,
    deleted = case excluded.op when 'seal' then stored.deleted else excluded.deleted end,
    holder = excluded.holder,
    value = case excluded.op
      when 'seal' then stored.value
      when 'patch' then palisade.merge_patch(stored.value, excluded.value)
      else excluded.value
    end,
    updated_at = excluded.updated_at
  where ${admits("stored", "excluded")}`;

const answer = `resource, rev, op = 'put' and born = rev as created, deleted, case when op in ('patch', 'seal') then value::text end as value`;

const recorded = `recorded as (
  insert into palisade.history (rev, token, seq, written_at, resource, op, holder)
  select rev, token, seq, updated_at, resource, op, holder from written where op <> 'seal'
)`;

// A key that another connection is using at this moment makes this insert wait, and then fail the whole statement with 23505: nothing is written twice.
const outcome = (row: string) =>
  `jsonb_build_object('rev', ${row}.rev, 'token', ${row}.token, 'created', ${row}.created, 'deleted', ${row}.deleted, 'value', ${row}.value)`;
const remembered = {
  each: `remembered as (
  insert into palisade.used_keys (used_at, key, fingerprint, outcome)
  select written.updated_at, named.key, named.fingerprint, jsonb_build_object(written.resource, ${outcome("written")})
  from written join unnest($1::text[], $9::text[], $10::text[]) as named(resource, key, fingerprint) on named.resource = written.resource
)`,
  all: `remembered as (
  insert into palisade.used_keys (used_at, key, fingerprint, outcome)
  select now(), $9::text, $10::text, jsonb_object_agg(written.resource, ${outcome("written")})
  from written having count(*) = cardinality($1::text[])
)`,
};

export function fencedWrite(form: StatementForm): Statement {
  const { scope, keys, history } = form;
  const name = `palisade-${scope}-${keys}`;
  if (scope === "each" && keys === "none" && history === "off") return { name, text: `${upsert(form)}\n  returning ${answer}` };
  const parts = [`written as (${upsert(form)}\n  returning ${answer}, token, seq, op, holder, updated_at\n)`];
  if (history === "on") parts.push(recorded);
  if (keys === "named") parts.push(remembered[scope]);
  const first =
    scope === "each" ? "resource" : "case when count(*) over () = cardinality($1::text[]) then resource else palisade.refuse_all() end";
  return { name, text: `with ${parts.join(", ")}\nselect ${first}, rev, created, deleted, value from written` };
}

/** The first eight parameters of every form: one array per column. */
export function parametersOf(rows: readonly FencedRow[]): string[] {
  const column = (element: (row: FencedRow) => string): string => `{${rows.map(element).join(",")}}`;
  return [
    column(({ request }) => quoted(request.resource)),
    column(({ request }) => String(request.token)),
    column(({ request }) => String(request.seq ?? 0)),
    column(({ request }) => request.op),
    column(({ request }) => expectedNumber(request.expected)),
    column(({ request }) => quotedOrNull(request.holder)),
    column(({ request }) => quotedOrNull(request.value)),
    column(({ verified }) => (verified ? "t" : "f")),
  ];
}

export function arrayOf(texts: readonly string[]): string {
  return `{${texts.map(quoted).join(",")}}`;
}

function expectedNumber(expected: Expected | undefined): string {
  if (expected === undefined) return "null";
  return expected === "absent" ? "0" : expected === "present" ? "-1" : String(expected);
}

/** An element of an array literal. Always in quotes, so that the text null stays a text. */
function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function quotedOrNull(text: string | undefined): string {
  return text === undefined ? "null" : quoted(text);
}
