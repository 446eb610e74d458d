// The fenced statement on tables that Citus distributes: the same condition and the same effect, in
// the two shapes that it sends as they are to the one worker that keeps the rows. INSERT … SELECT
// is none of them: Citus would gather its rows on the coordinator and ask every worker.
import type { Idempotency } from "../fence/verdict.js";
import type { Durability } from "../store/session.js";
import type { BoundStatement, Row } from "../store/statement.js";
import { admits, answerColumns, effect, type FencedRow, named, raisesNothing } from "./fenced-statement.js";
import { parametersOf, valuesOf } from "./plain-writes.js";
import { arrayOf } from "./refusal.js";

export interface CitusForm {
  readonly durability: Durability;
  readonly documentLimitBytes: number;
}

/** After those that every form answers: for the history, and for used keys. */
const returned = (form: CitusForm): string => `
  returning ${answerColumns(form)}, stored.token, stored.seq, stored.op, stored.holder,
    palisade.demand_durability(stored.resource, '${form.durability}')`;

const notUsed = `and not exists (
      select from palisade.used_keys as used where used.resource = any($1::text[]) and used.resource = request.resource and used.key = request.key)`;

/** For rows that may not be there and must not be made: it finds none of them. */
export function updateRows(form: CitusForm, rows: readonly FencedRow[], keys: readonly (string | undefined)[] = []): BoundStatement {
  const isKeyed = keys.some((key) => key !== undefined);
  const text = `
  update palisade.resources as stored set ${effect("request", "request.revisions")}
  from (select $10::jsonb[]) as replaced,
    unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::text[], $7::jsonb[], $8::boolean[], $9::bigint[]${isKeyed ? ", $11::text[]" : ""})
      as request(resource, token, seq, op, expected, holder, value, verified, revisions${isKeyed ? ", key" : ""})
  where stored.resource = any($1::text[]) and stored.resource = request.resource
    and ${raisesNothing("stored")} and ${admits("stored", "request")} ${isKeyed ? notUsed : ""}${returned(form)}`;
  const literals = keys.map((key) => (key === undefined ? "null" : arrayOf([key]).slice(1, -1)));
  return { ...named("palisade-citus-update", text), values: [...parametersOf(rows), ...(isKeyed ? [`{${literals.join(",")}}`] : [])] };
}

const PARAMETERS = 9;

/** Whether a row may be made of it, if there is none. */
export function mayInsert({ request, verified }: FencedRow): boolean {
  return verified && (request.op === "put" || request.op === "seal") && (request.expected === undefined || request.expected === "absent");
}

/** For rows that may be made, if they are not there. */
export function upsertRows(form: CitusForm, rows: readonly FencedRow[]): BoundStatement {
  const lines = rows.map((_, index) => {
    const [resource, token, seq, op, expected, holder, value, rev, born] = Array.from(
      { length: PARAMETERS },
      (_unused, place) => `$${index * PARAMETERS + place + 1}`,
    );
    return `(${resource}::text, ${token}::bigint, ${seq}::bigint, ${rev}::bigint, ${born}::bigint, ${op}::text, ${expected}::bigint,
      ${value}::jsonb is null, ${holder}::text, ${value}::jsonb, now())`;
  });
  const isFolded = rows.some(({ fold }) => fold !== undefined && fold.length > 0);
  // A document that is replaced by the next one of its fold is parsed like all others.
  const replaced = isFolded ? `\n    and $${rows.length * PARAMETERS + 1}::jsonb[] is not null` : "";
  const text = `
  insert into palisade.resources as stored (resource, token, seq, rev, born, op, expected, deleted, holder, value, updated_at)
  values ${lines.join(", ")}
  on conflict (resource) do update set ${effect("excluded", "excluded.rev")}
  where ${admits("stored", "excluded")}${replaced}${returned(form)}`;
  const values: (string | Buffer | null)[] = rows.flatMap((row) => {
    const { request, fold = [] } = row;
    const [resource = "", token = "", seq = "", op = "", expected = null, holder = null, value = null] = valuesOf(row);
    const last = fold.at(-1)?.request.value ?? value;
    const revisions = request.op === "seal" ? 0 : 1 + fold.length;
    return [resource, token, seq, op, expected, holder, last, String(revisions), request.op === "seal" ? "0" : "1"];
  });
  if (isFolded) values.push(parametersOf(rows).at(-1) ?? null);
  // A text for each number of rows: only the shortest is worth keeping.
  return rows.length === 1 && !isFolded ? { ...named("palisade-citus-upsert", text), values } : { name: "", text, values };
}

/** The history of accepted rows, with those that were folded into them. */
export function recordRows(rows: readonly Row[], revisionsOf: (resource: unknown) => number): BoundStatement | undefined {
  const values: (string | null)[] = [];
  const lines: string[] = [];
  for (const [resource, rev, , , , token, seq, op, holder] of rows) {
    if (op === "seal") continue;
    for (let later = revisionsOf(resource) - 1; later >= 0; later -= 1) {
      const at = values.length;
      values.push(
        String(Number(rev) - later),
        String(token),
        String(seq),
        String(resource),
        String(op),
        holder === null ? null : String(holder),
      );
      lines.push(
        `($${at + 1}::bigint, $${at + 2}::bigint, $${at + 3}::bigint, now(), $${at + 4}::text, $${at + 5}::text, $${at + 6}::text)`,
      );
    }
  }
  if (lines.length === 0) return undefined;
  const text = `insert into palisade.history (rev, token, seq, written_at, resource, op, holder) values ${lines.join(", ")}`;
  return { name: "", text, values };
}

/** What a used key is remembered with. */
export interface Used {
  /** The shard of this name keeps it. */
  readonly resource: string;
  readonly idempotency: Idempotency;
  readonly rows: readonly Row[];
}

export function rememberKeys(used: readonly Used[]): BoundStatement {
  const lines = used.map(
    (_, index) => `($${index * 4 + 1}::text, $${index * 4 + 2}::text, now(), $${index * 4 + 3}::text, $${index * 4 + 4}::jsonb)`,
  );
  const values = used.flatMap(({ resource, idempotency, rows }) => {
    const outcome = `{${rows.map((row) => `${JSON.stringify(row[0])}:${outcomeOf(row)}`).join(",")}}`;
    return [resource, idempotency.key, idempotency.fingerprint, outcome];
  });
  return {
    name: "",
    text: `insert into palisade.used_keys (resource, key, used_at, fingerprint, outcome) values ${lines.join(", ")}`,
    values,
  };
}

function outcomeOf([, rev, born, deleted, value, token, , op]: Row): string {
  const known = JSON.stringify({ rev, token, created: op === "put" && born === rev, deleted });
  return `${known.slice(0, -1)},"value":${JSON.stringify(value ?? null)}}`;
}
