// What many concurrent writers were told, held against what is stored after random schedules: the fence holds and
// every answer is true. The same while gateways and Postgres are killed is what the fault runs do (packages/robustness).
import fc from "fast-check";
import type pg from "pg";
import type { Verdict, WriteRequest } from "../../src/fence/verdict.js";
import type { FencedStore } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";

const operation = fc.record(
  {
    op: fc.constantFrom("put", "put", "put", "patch", "delete", "seal"),
    place: fc.nat(2),
    token: fc.integer({ min: 1, max: 8 }),
    seq: fc.integer({ min: 1, max: 4 }),
    expected: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.constantFrom("absent" as const, "present" as const)),
  },
  { requiredKeys: ["op", "place", "token"] },
);
/** Clients run at the same time; the operations of each run one after the other. */
const clients = fc.array(fc.array(operation, { minLength: 1, maxLength: 12 }), { minLength: 2, maxLength: 10 });

type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

function requestOf({ op, place, token, seq, expected }: Operation, resources: readonly string[]): WriteRequest {
  const value = op === "patch" ? { value: '{"patched":true}' } : {};
  return { op, resource: resources[place] ?? "", token, seq, ...(op === "seal" ? {} : { expected }), ...value };
}

describe("G1 random histories", () => {
  test("G1 of concurrent writers through two gateways never let a token fall, nor lose or invent a write", async ({
    openStore,
    connect,
  }) => {
    const [one, two] = [await openStore({ history: "on" }), await openStore({ history: "on", maxBatchRows: 3 })];
    const client = await connect();
    await fc.assert(
      fc.asyncProperty(clients, async (schedules) => {
        const resources = [uniqueName("h"), uniqueName("h"), uniqueName("h")];
        const recorder = new Recorder();
        await Promise.all(
          schedules.map(async (schedule, index) => {
            const store = index % 2 === 0 ? one : two;
            for (const step of schedule) await recorder.write(store, requestOf(step, resources));
          }),
        );
        expect(await brokenPromises(client, recorder.records)).toEqual([]);
      }),
      { numRuns: 25 },
    );
  });

  test("G1 control: the checker finds a token that fell, a lost write, an invented one and a false refusal", async ({
    connect,
    openStore,
  }) => {
    const client = await connect();
    const store = await openStore({ history: "on" });
    const resource = uniqueName("c");
    const recorder = new Recorder();
    for (const token of [1, 5]) await recorder.write(store, { op: "put", resource, token });
    expect(await brokenPromises(client, recorder.records)).toEqual([]);
    const [first, second] = recorder.records as [Recorded, Recorded];
    const told = (record: Recorded, change: object): Recorded => ({ ...record, verdict: { ...record.verdict, ...change } });
    const faultsOf = async (...records: Recorded[]) =>
      (await brokenPromises(client, records)).map((fault) => fault.slice(resource.length + 2));
    const found = (promise: string, what = "") => expect.arrayContaining([expect.stringMatching(new RegExp(`^${promise}: .*${what}`))]);
    expect(await faultsOf(first, told(second, { rev: 3 }))).toEqual(found("G3", "accepted as 3"));
    expect(await faultsOf(first, told(second, { kind: "stale" }))).toEqual(found("G3", "told stale"));
    expect(await faultsOf(first)).toEqual(found("G3", "nobody sent it"));
    expect(await faultsOf(first, second, told({ ...second, id: "w9" }, { kind: "accepted", rev: 9 }))).toEqual(found("G3", "is \\[\\]"));
    const falselyStale = told({ ...first, id: "w9", request: { ...first.request, token: 7 } }, { kind: "stale" });
    expect(await faultsOf(first, falselyStale)).toEqual(found("G1", "without a newer token"));
    const outOfOrder = { ...first, startedAt: second.endedAt + 1, endedAt: second.endedAt + 2 };
    expect(await faultsOf(outOfOrder, second)).toEqual(found("G1", "accepted after"));
    await client.query("update palisade.history set token = 9 where resource = $1 and rev = 1", [resource]);
    expect(await faultsOf(first, second)).toEqual(found("G1", "token 5 after 9"));
    await client.query("update palisade.history set holder = 'w1', rev = 3 where resource = $1 and rev = 2", [resource]);
    expect(await faultsOf(first, second)).toEqual(found("G3", "stands at place 2"));
    expect(await faultsOf(told(first, { kind: "outcome_unknown" }), second)).toEqual(found("G3", "told outcome_unknown"));
  });
});

interface Recorded {
  /** Unique. The document is its JSON, and it is sent as the holder. */
  readonly id: string;
  readonly request: WriteRequest;
  readonly verdict: Pick<Verdict, "kind"> & { readonly rev?: number };
  readonly startedAt: number;
  readonly endedAt: number;
}

/** Records every call, whichever store it goes to. */
class Recorder {
  readonly records: Recorded[] = [];
  #ids = 0;

  async write(store: FencedStore, request: WriteRequest): Promise<void> {
    this.#ids += 1;
    const id = `w${this.#ids}`;
    const named = { ...request, holder: id, ...(request.op === "put" ? { value: JSON.stringify(id) } : {}) };
    const startedAt = performance.now();
    const verdict = await store.write(named);
    this.records.push({ id, request: named, verdict, startedAt, endedAt: performance.now() });
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
async function brokenPromises(client: pg.Client, records: readonly Recorded[]): Promise<string[]> {
  const broken: string[] = [];
  for (const [resource, own] of groupedBy(records, ({ request }) => request.resource)) {
    const { rows: entries } = await client.query<Entry>(
      `select rev::int, token::int, holder as id, op from palisade.history where resource = $1 order by rev`,
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
