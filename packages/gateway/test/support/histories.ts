// Writers whose every call is recorded, and the judge of what they were told against what Postgres
// holds: by the promises alone, whatever happened meanwhile.
import { setTimeout as sleep } from "node:timers/promises";
import { withClient } from "@palisade/testkit";
import type pg from "pg";
import type { Verdict, WriteRequest } from "../../src/fence/verdict.js";
import { openStore } from "../../src/fenced-store.js";
import { eventually, expect, longTimeouts, uniqueName } from "./fixtures.js";
import { put } from "./wire.js";

export interface Recorded {
  /** Unique. The document is its JSON, and it is sent as the holder, or as the number of the write over HTTP. */
  readonly id: string;
  readonly request: WriteRequest;
  readonly verdict: Pick<Verdict, "kind"> & { readonly rev?: number };
  readonly startedAt: number;
  readonly endedAt: number;
}

/** A store, or a gateway that is asked over HTTP. */
export type Writer = (request: WriteRequest) => Promise<Recorded["verdict"]>;

/** Records every call, whoever it goes to. Writes over HTTP are known by their numbers, others by their holders. */
export class Recorder {
  readonly records: Recorded[] = [];
  readonly knownBy: "holder" | "seq";
  #ids = 0;

  constructor(knownBy: "holder" | "seq" = "holder") {
    this.knownBy = knownBy;
  }

  async write(writer: Writer, request: WriteRequest): Promise<Recorded["verdict"]> {
    this.#ids += 1;
    const id = this.knownBy === "holder" ? `w${this.#ids}` : String(this.#ids);
    const name = this.knownBy === "holder" ? { holder: id } : { seq: this.#ids };
    const named = { ...request, ...name, ...(request.op === "put" ? { value: JSON.stringify(id) } : {}) };
    const startedAt = performance.now();
    const verdict = await writer(named);
    this.records.push({ id, request: named, verdict, startedAt, endedAt: performance.now() });
    return verdict;
  }
}

/** Through a gateway, a put. A lost connection leaves it unknown. */
export const overHttp = (url: string): Writer => {
  return async ({ resource, token, seq, value = "" }) => {
    try {
      const { status, json } = await put(url, resource, { token: `${token};seq=${seq}`, value: JSON.parse(value) });
      if (status < 300) return { kind: "accepted", rev: json.rev };
      if (json.outcome === "unknown") return { kind: "outcome_unknown" };
      return { kind: json.code === "fencing_token_stale" ? "stale" : "unavailable" };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === undefined) throw error;
      return { kind: "outcome_unknown" };
    }
  };
};

interface CrashStory {
  /** Many clients share each of them. */
  readonly writers: readonly Writer[];
  readonly recorder: Recorder;
  /** Each kills something and brings it back. */
  readonly crashes: readonly (() => Promise<void>)[];
  /** Accepted between two of them. */
  readonly writesBetween: number;
  readonly databaseUrl: string;
}

/** What is not as it was told, through crashes under load: nothing, if the promises hold. */
export async function brokenThroughCrashes(story: CrashStory): Promise<readonly string[]> {
  const { writers, recorder, crashes, writesBetween, databaseUrl } = story;
  const resources = Array.from({ length: 12 }, () => uniqueName("crash"));
  let isOver = false;
  const clients = Array.from({ length: 24 }, async (_, index) => {
    for (let round = 1; !isOver; round += 1) {
      const resource = resources[(index + round) % resources.length] ?? "";
      const op = recorder.knownBy === "seq" ? "put" : round % 10 === 0 ? "seal" : round % 7 === 0 ? "delete" : "put";
      const writer = writers[index % writers.length] as Writer;
      const { kind } = await recorder.write(writer, { op, resource, token: 1 + Math.floor(round / 4) + (index % 3) });
      if (kind === "unavailable" || kind === "outcome_unknown") await sleep(2); // Give the restart the processor.
    }
  });
  const accepted = () => recorder.records.filter(({ verdict }) => verdict.kind === "accepted").length;
  const goOn = async (more: number): Promise<void> => {
    const before = accepted();
    await eventually(() => accepted() - before).toBeGreaterThan(more);
  };
  try {
    for (const crash of crashes) {
      await goOn(writesBetween);
      await crash();
    }
    await goOn(writesBetween / 2);
  } finally {
    isOver = true;
    await Promise.all(clients);
  }
  return await withClient(databaseUrl, (client) => brokenPromises(client, recorder));
}

/** Two gateways write while servers of their database are killed. */
export async function brokenThroughDatabaseCrashes(
  databaseUrl: string,
  crashes: CrashStory["crashes"],
  writesBetween = 400,
): Promise<readonly string[]> {
  const stores = await Promise.all([1, 2].map(() => openStore({ databaseUrl, history: "on", ...longTimeouts })));
  const recorder = new Recorder();
  const writers = stores.map(
    (store): Writer =>
      (request) =>
        store.write(request),
  );
  try {
    const broken = await brokenThroughCrashes({ writers, recorder, crashes, writesBetween, databaseUrl });
    const kinds = new Set(recorder.records.map(({ verdict }) => verdict.kind));
    expect([...kinds]).toEqual(expect.arrayContaining(["accepted", "stale", "unavailable"]));
    return broken;
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

interface Entry {
  readonly rev: number;
  readonly token: number;
  /** Of the write that made it. */
  readonly id: string;
  readonly op: string;
}

interface Row {
  readonly rev: number;
  readonly token: number;
  readonly value: string | null;
}

/** One line per broken promise; empty when all were kept. */
export async function brokenPromises(client: pg.Client, { records, knownBy }: Pick<Recorder, "records" | "knownBy">): Promise<string[]> {
  const broken: string[] = [];
  for (const [resource, own] of groupedBy(records, ({ request }) => request.resource)) {
    const { rows: entries } = await client.query<Entry>(
      `select rev::int, token::int, ${knownBy}::text as id, op from palisade.history where resource = $1 order by rev`,
      [resource],
    );
    const { rows } = await client.query<Row>("select rev::int, token::int, value::text from palisade.resources where resource = $1", [
      resource,
    ]);
    const found = [...chainFaults(entries, rows[0]), ...answerFaults(own, entries), ...orderFaults(own), ...staleFaults(own)];
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
  else if (last.op === "put" && row.value !== JSON.stringify(last.id))
    yield `G3: revision ${last.rev} was written by ${last.id} and holds ${row.value}`;
}

/**
 * Accepted: stored exactly once, as answered. Unknown: at most once. Anything else: not stored.
 * Nothing that nobody sent.
 */
function* answerFaults(records: readonly Recorded[], entries: readonly Entry[]): Generator<string> {
  const byId = groupedBy(entries, ({ id }) => id);
  for (const { id, request, verdict } of records) {
    if (request.op === "seal") continue;
    const made = byId.get(id) ?? [];
    byId.delete(id);
    const [entry] = made;
    if (verdict.kind === "accepted") {
      if (made.length !== 1 || entry?.rev !== verdict.rev || entry?.token !== request.token)
        yield `G3: ${id} was accepted as ${verdict.rev} and is ${JSON.stringify(made)}`;
    } else if (made.length > (verdict.kind === "outcome_unknown" ? 1 : 0))
      yield `G3: ${id} was told ${verdict.kind} and is ${JSON.stringify(made)}`;
  }
  for (const id of byId.keys()) yield `G3: ${id} is stored and nobody sent it`;
}

/**
 * What ended before another operation began came before it: in tokens for all operations, in
 * revisions for writes.
 */
function* orderFaults(records: readonly Recorded[]): Generator<string> {
  const accepted = records.flatMap((record) => (record.verdict.kind === "accepted" ? [{ ...record, rev: record.verdict.rev ?? 0 }] : []));
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
