// Judges the answers of gateways against what Postgres holds, by the promises alone; scenarios only
// produce the records.
import type pg from "pg";
import type { Verdict, WriteRequest } from "../../src/fence/verdict.js";

export interface Recorded {
  /**
   * Unique, and sent as the holder, so that the history table says which attempt made which
   * revision.
   */
  readonly id: string;
  readonly request: WriteRequest;
  readonly verdict: Verdict;
  readonly startedAt: number;
  readonly endedAt: number;
}

interface Entry {
  readonly rev: number;
  readonly token: number;
  readonly holder: string;
  readonly op: string;
}

interface Row {
  readonly rev: number;
  readonly token: number;
  readonly value: string | null;
}

/** Records every call, whichever store it goes through. */
export class Recorder {
  readonly records: Recorded[] = [];
  #ids = 0;

  async write(store: { write(request: WriteRequest): Promise<Verdict> }, request: WriteRequest): Promise<Verdict> {
    this.#ids += 1;
    const id = `w${this.#ids}`;
    const named = { ...request, holder: id, ...(request.op === "put" ? { value: JSON.stringify(id) } : {}) };
    const startedAt = performance.now();
    const verdict = await store.write(named);
    this.records.push({ id, request: named, verdict, startedAt, endedAt: performance.now() });
    return verdict;
  }
}

/** One line per broken promise; empty when all were kept. */
export async function brokenPromises(client: pg.Client, records: readonly Recorded[]): Promise<string[]> {
  const byResource = groupedBy(records, ({ request }) => request.resource);
  const broken: string[] = [];
  for (const [resource, own] of byResource) {
    const entries = await client.query<Entry>(
      "select rev::int, token::int, holder, op from palisade.history where resource = $1 order by rev",
      [resource],
    );
    const rows = await client.query<Row>("select rev::int, token::int, value::text from palisade.resources where resource = $1", [
      resource,
    ]);
    const found = [
      ...chainFaults(entries.rows, rows.rows[0]),
      ...answerFaults(own, entries.rows),
      ...orderFaults(own),
      ...staleFaults(own),
    ];
    broken.push(...found.map((fault) => `${resource}: ${fault}`));
  }
  return broken;
}

/** Revisions without gaps, tokens that never fall, and a row that equals the last entry. */
function* chainFaults(entries: readonly Entry[], row: Row | undefined): Generator<string> {
  let token = 0;
  for (const [index, entry] of entries.entries()) {
    if (entry.rev !== index + 1) yield `G3: revision ${entry.rev} stands at place ${index + 1}`;
    if (entry.token < token) yield `G1: revision ${entry.rev} has token ${entry.token} after ${token}`;
    token = Math.max(token, entry.token);
  }
  const last = entries.at(-1);
  if (last === undefined) return;
  if (row === undefined || row.rev !== last.rev || row.token < token)
    yield `G3: the row ${JSON.stringify(row)} does not follow from ${JSON.stringify(last)}`;
  else if (last.op === "put" && row.value !== JSON.stringify(last.holder))
    yield `G3: revision ${last.rev} was written by ${last.holder} and holds ${row.value}`;
}

/** Accepted: stored exactly once, as answered. Unknown: at most once. Anything else: not stored. */
function* answerFaults(records: readonly Recorded[], entries: readonly Entry[]): Generator<string> {
  const byId = groupedBy(entries, ({ holder }) => holder);
  for (const { id, request, verdict } of records) {
    if (request.op === "seal") continue;
    const made = byId.get(id) ?? [];
    const [entry] = made;
    if (verdict.kind === "accepted") {
      if (made.length !== 1 || entry?.rev !== verdict.rev || entry.token !== request.token)
        yield `G3: ${id} was accepted as ${verdict.rev} and is ${JSON.stringify(made)}`;
    } else if (made.length > (verdict.kind === "outcome_unknown" ? 1 : 0))
      yield `G3: ${id} was told ${verdict.kind} and is ${JSON.stringify(made)}`;
  }
}

/**
 * What ended before another operation began came before it: in tokens for all operations, in
 * revisions for writes.
 */
function* orderFaults(records: readonly Recorded[]): Generator<string> {
  const accepted = records.flatMap((record) => (record.verdict.kind === "accepted" ? [{ ...record, rev: record.verdict.rev }] : []));
  for (const later of accepted)
    for (const earlier of accepted) {
      if (earlier.endedAt >= later.startedAt) continue;
      if (earlier.request.token > later.request.token)
        yield `G1: ${later.id} (token ${later.request.token}) was accepted after ${earlier.id} (${earlier.request.token})`;
      if (earlier.rev > later.rev) yield `G3: ${later.id} got revision ${later.rev} after ${earlier.id} got ${earlier.rev}`;
    }
}

/** A stale answer needs a newer token that may have been stored. */
function* staleFaults(records: readonly Recorded[]): Generator<string> {
  for (const { id, request, verdict, endedAt } of records) {
    if (verdict.kind !== "stale") continue;
    const newer = records.some(
      (other) =>
        other.request.token > request.token && other.startedAt < endedAt && ["accepted", "outcome_unknown"].includes(other.verdict.kind),
    );
    if (!newer) yield `G1: ${id} (token ${request.token}) was called stale without a newer token`;
  }
}

/** Map.groupBy, which Node 20 does not have. */
function groupedBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
