// Why rows were not accepted: a second statement, after the refusal. Its answer is a hint for the caller and decides nothing: what it reads may be newer than what refused.

import type { Accepted, StoredState } from "../fence/verdict.js";
import type { BoundStatement, Row } from "../store/write-connection.js";
import { arrayOf } from "./fenced-statement.js";

export interface UsedKey {
  readonly fingerprint: string;
  readonly outcome: Readonly<Record<string, Omit<Accepted, "kind" | "resource" | "replayed">>>;
}

export interface Explanation {
  /** In the order of the resources; undefined where there is no row. */
  readonly states: readonly (StoredState | undefined)[];
  readonly usedKeys: ReadonlyMap<string, UsedKey>;
  readonly synchronousStandbyNames: string;
}

const EXPLAIN = `
  select seen.token, seen.seq, seen.rev, seen.deleted, used.key, used.fingerprint, used.outcome, current_setting('synchronous_standby_names')
  from unnest($1::EXPLAIN[], $2::EXPLAIN[]) with ordinality as asked(resource, key, place)
  left join lateral (
    select token, seq, rev, deleted from palisade.resources as found where found.resource = asked.resource limit 1
  ) as seen on true
  left join lateral (
    select key, fingerprint, outcome from palisade.used_keys as found where found.key = asked.key limit 1
  ) as used on true
  order by place`;

/** One line per resource; `keys` has the idempotency key of each, or null. */
export function explain(resources: readonly string[], keys: readonly (string | undefined)[]): BoundStatement {
  const named = keys.map((key) => (key === undefined ? "null" : arrayOf([key]).slice(1, -1)));
  return { name: "palisade-explain", text: EXPLAIN, values: [arrayOf(resources), `{${named.join(",")}}`] };
}

export function explanationOf(rows: readonly Row[]): Explanation {
  const usedKeys = new Map<string, UsedKey>();
  for (const [, , , , key, fingerprint, outcome] of rows)
    if (typeof key === "string") usedKeys.set(key, { fingerprint: String(fingerprint), outcome: outcome as UsedKey["outcome"] });
  const states = rows.map(([token, seq, rev, deleted]) =>
    typeof token === "number" ? { token, seq: Number(seq), rev: Number(rev), deleted: deleted === true } : undefined,
  );
  return { states, usedKeys, synchronousStandbyNames: String(rows[0]?.[7]) };
}
