// Concurrent writes share statements, and puts that wait for one resource are one row of one
// (decision 0008). Nobody can tell: the answers, the row and its history are those of the same
// writes one after the other, and a fault of one of them does not affect the others. A write with a
// number is one write, however often it is sent and through however many gateways.
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import type pg from "pg";
import type { TransactionVerdict, Verdict, WriteRequest } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { cutWaitingSessions, holderOf, put, untilSomebodyWaits } from "../support/sql.js";

const NOT_FOR_POSTGRES = '"\\u0000"';

const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName());
const kinds = (verdicts: readonly { readonly kind: string }[]): string[] => [...new Set(verdicts.map(({ kind }) => kind))];
const writeAll = (store: FencedStore, requests: readonly WriteRequest[]): Promise<Verdict[]> =>
  Promise.all(requests.map((request) => store.write(request)));
const putMany = (store: FencedStore, resources: readonly string[], token = 1) =>
  writeAll(
    store,
    resources.map((resource, index) => put(resource, token, String(index))),
  );
/** Of one resource, which can be folded. */
const puts = (resource: string, count: number, rest: Partial<WriteRequest> = {}): WriteRequest[] =>
  Array.from({ length: count }, (_, index) => ({ ...put(resource, 1, String(index)), ...rest }));
const revsOf = (verdicts: readonly Verdict[]) => verdicts.map((verdict) => (verdict.kind === "accepted" ? verdict.rev : verdict.kind));
const upTo = (most: number, first = 1): number[] => Array.from({ length: most - first + 1 }, (_, index) => first + index);

/** What a store reports of its batches. */
function batches() {
  const rows: number[] = [];
  const observe = (event: StoreEvent): void => void (event.kind === "batch" && rows.push(event.rows));
  return { rows, observe };
}

describe("group commit", () => {
  test("sends the writes of one turn of the event loop as one statement, within its limits", async ({ openStore }) => {
    const { rows, observe } = batches();
    const roomy = await openStore({ observe });
    expect(kinds(await putMany(roomy, fresh(100)))).toEqual(["accepted"]);
    expect(rows.splice(0)).toEqual([100]);
    const store = await openStore({ statementsInFlight: 3, maxBatchRows: 20, maxBatchBytes: 10_000, observe });
    const all = putMany(store, fresh(200));
    await nextTurn();
    expect(store.stats().statementsInFlight).toBe(3);
    await all;
    expect(Math.max(...rows.splice(0))).toBe(20);
    const large = JSON.stringify("x".repeat(3_000));
    const requests = fresh(12).map((resource) => put(resource, 1, large));
    await writeAll(store, requests);
    expect(rows).toEqual([3, 3, 3, 3]);
  });

  test("tells the refused rows of a batch why, and accepts the rest", async ({ store }) => {
    const [stale, mismatched, absent, bad, fine] = fresh(5) as [string, string, string, string, string];
    await putMany(store, [stale, mismatched], 9);
    const verdicts = await writeAll(store, [
      put(stale, 8, "1"),
      { ...put(mismatched, 9, "1"), expected: 7 },
      { op: "delete", resource: absent, token: 9 },
      put(bad, 9, NOT_FOR_POSTGRES),
      put(fine, 9, "1"),
    ]);
    expect(verdicts.map(({ kind }) => kind)).toEqual(["stale", "etag_mismatch", "not_found", "value_rejected", "accepted"]);
  });

  test("keeps names, documents and holders as they came, whatever characters they have, and null as a document", async ({ store }) => {
    const odd = ['a"b', "a\\b", "{a,b}", "null", "NULL", "é/ü", "𝄞", "a b", "'", "$1", "%", "_", "\u{10ffff}"];
    const requests = odd.map((text): WriteRequest => ({ ...put(`${uniqueName()}/${text}`, 1, JSON.stringify(text)), holder: text }));
    requests.push(put(uniqueName(), 1, "null"), put(uniqueName(), 1, '{"a": 12345678901234567890, "b": 1.000}'));
    expect(kinds(await writeAll(store, requests))).toEqual(["accepted"]);
    // Read together, and so by few statements.
    const found = await Promise.all(requests.map(({ resource }) => store.read(resource)));
    expect(found).toMatchObject(requests.map(({ resource, value, holder = null }) => ({ kind: "found", resource, value, holder })));
    for (const value of ['"\\ud800"', "1e200000", "{", "nonsense", ""])
      expect(await store.write(put(uniqueName(), 1, value)), value).toMatchObject({ kind: "value_rejected" });
  });

  test("may deadlock with another session: it is retried, and every row is written", async ({ openStore, connect, database }) => {
    const [one, middle, two] = fresh(3).sort() as [string, string, string];
    const admin = await connect();
    await admin.query(`alter database "${database.name}" set deadlock_timeout = '20ms'`);
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    await putMany(store, [one, middle, two]);
    const [user, other] = [await holderOf(connect, two), await holderOf(connect, middle)];
    await user.query("set deadlock_timeout = '10s'");
    // The batch holds one row and waits for the middle one; the user, who holds two, waits for the
    // first; then the middle is freed, and the batch completes the deadlock.
    const verdicts = putMany(store, [one, middle, two], 2);
    await untilSomebodyWaits(admin);
    const waits = user.query("select from palisade.resources where resource = $1 for update", [one]);
    await untilSomebodyWaits(admin, 2);
    await other.query("commit");
    await waits;
    await user.query("commit");
    expect(kinds(await verdicts)).toEqual(["accepted"]);
    expect(events).toContainEqual(expect.objectContaining({ kind: "retried", code: "40P01" }));
    await admin.query(`alter database "${database.name}" reset deadlock_timeout`);
  });
});

describe("the queue", () => {
  test("is bounded in writes and in bytes, and says overloaded beyond that", async ({ openStore }) => {
    const store = await openStore({ maxQueuedWrites: 10, maxQueuedBytes: 1_000 });
    const verdicts = await putMany(store, fresh(15));
    const overloaded = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
    expect(kinds(verdicts.slice(0, 10))).toEqual(["accepted"]);
    expect(verdicts.slice(10)).toEqual(Array.from({ length: 5 }, () => overloaded));
    const [large, another] = fresh(2).map((resource) => store.write(put(resource, 1, JSON.stringify("x".repeat(600)))));
    expect([await large, await another]).toMatchObject([{ kind: "accepted" }, overloaded]);
  });

  test("G3 when closing takes too long, what was not sent is not applied and what was sent is unknown", async ({ openStore, connect }) => {
    const store = await openStore({ statementsInFlight: 1, maxBatchRows: 1 });
    const [held, ...others] = fresh(4) as [string, ...string[]];
    await putMany(store, [held]);
    const observer = await connect();
    await holderOf(connect, held);
    const verdicts = putMany(store, [held, ...others], 2);
    await untilSomebodyWaits(observer);
    await store.close({ drainMs: 20 });
    const [sent, ...waiting] = await verdicts;
    expect(sent).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    expect(waiting.map((verdict) => verdict.kind === "unavailable" && verdict.reason)).toEqual(["closing", "closing", "closing"]);
  });
});

/** What the writes left behind, without times and names. */
async function leftBehind(client: pg.Client, resource: string): Promise<unknown> {
  const { rows: stored } = await client.query(
    "select token, seq, rev, born, op, expected, deleted, holder, value::text from palisade.resources where resource = $1",
    [resource],
  );
  const { rows: history } = await client.query(
    "select rev, token, seq, op, holder from palisade.history where resource = $1 order by rev",
    [resource],
  );
  return { stored, history };
}

const seldom = <T>(rare: fc.Arbitrary<T>) => fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: rare });
const mostly = <T>(usual: T, ...others: T[]) =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
const operation = fc.record({
  op: mostly("put" as const, "patch" as const, "delete" as const, "seal" as const),
  token: mostly(3, 2, 4),
  seq: seldom(fc.integer({ min: 1, max: 4 })),
  expected: seldom(fc.constantFrom(1, 2, 3, "absent" as const, "present" as const)),
  holder: mostly("one", "two"),
  document: fc.constantFrom("{}", "1", '{"a":null}', "[]", "2", "3", "4", "5", "6", NOT_FOR_POSTGRES),
  /** The next write comes only once the statements of those before may be under way. */
  isLast: mostly(false, true),
});
type Operation = typeof operation extends fc.Arbitrary<infer T> ? T : never;

function requestOf({ op, token, seq, expected, holder, document }: Operation, resource: string): WriteRequest {
  if (op === "seal") return { op, resource, token, seq, holder };
  return { op, resource, token, seq, expected, holder, value: op === "delete" ? undefined : document };
}

/**
 * A stale write of such a document is refused for the one or for the other: by a fence that was
 * seen before it is sent, by Postgres as it is read.
 */
function withoutName(verdict: Verdict, asked: Operation | undefined): unknown {
  const isEither = asked?.document === NOT_FOR_POSTGRES && (verdict.kind === "stale" || verdict.kind === "value_rejected");
  return isEither ? "refused" : { ...verdict, resource: undefined };
}

describe("puts that wait for one resource", () => {
  test("G3 are answered and remembered as if they had come one by one, whatever waits between", async ({ openStore, connect }) => {
    const [store, client] = [await openStore({ history: "on" }), await connect()];
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 2, maxLength: 25 }), async (operations) => {
        const [together, apart] = [uniqueName("together"), uniqueName("apart")];
        const answers: Promise<Verdict>[] = [];
        for (const each of operations) {
          answers.push(store.write(requestOf(each, together)));
          if (each.isLast) await nextTurn();
        }
        const expected: Verdict[] = [];
        for (const each of operations) expected.push(await store.write(requestOf(each, apart)));
        const told = (verdicts: readonly Verdict[]) => verdicts.map((verdict, place) => withoutName(verdict, operations[place]));
        expect(told(await Promise.all(answers))).toEqual(told(expected));
        expect(await leftBehind(client, together)).toEqual(await leftBehind(client, apart));
      }),
      { numRuns: 60 },
    );
  });

  test("are one row of one statement, and only the first of them made the document", async ({ openStore }) => {
    const { rows, observe } = batches();
    const store = await openStore({ observe });
    const resource = uniqueName();
    const verdicts = await writeAll(store, puts(resource, 60));
    expect(rows).toEqual([60]);
    expect(revsOf(verdicts)).toEqual(upTo(60));
    expect(verdicts.map((verdict) => verdict.kind === "accepted" && verdict.created)).toEqual(upTo(60).map((rev) => rev === 1));
    expect(await store.read(resource)).toMatchObject({ value: "59", rev: 60 });
  });

  test("G3 whose session ends under way are each told that nobody knows, and none is sent again", async ({ openStore, connect }) => {
    const store = await openStore({ history: "on" });
    const resource = uniqueName();
    await store.write(put(resource, 1, '"before"'));
    const [holder, observer] = [await holderOf(connect, resource), await connect()];
    const verdicts = writeAll(store, puts(resource, 10));
    await untilSomebodyWaits(observer);
    await cutWaitingSessions(observer);
    expect(kinds(await verdicts)).toEqual(["outcome_unknown"]);
    await holder.query("rollback");
    expect(await store.read(resource)).toMatchObject({ value: '"before"', rev: 1 });
  });
});

test("G3 writes and transactions with a number, raced through several gateways, are applied once, and the others are told", async ({
  openStore,
}) => {
  const stores = [await openStore(), await openStore(), await openStore()];
  const raced = async (send: (store: FencedStore) => Promise<Verdict | TransactionVerdict>, through = stores) =>
    (await Promise.all(through.map(send))).sort((a, b) => (a.kind < b.kind ? -1 : 1)); // The one that was applied comes first.
  const repeated = (currentRev: number) => ({ kind: "sequence_out_of_order", currentSeq: 7, currentRev });
  for (let round = 0; round < 10; round += 1) {
    const numbered = () => ({ ...put(uniqueName(), 5, "1"), seq: 7 });
    const [alone, one, other] = [numbered(), numbered(), numbered()];
    await stores[0]?.write(put(other.resource, 1, "0"));
    expect(await raced((store) => store.write(alone))).toMatchObject([{ kind: "accepted" }, repeated(1), repeated(1)]);
    const refusals = [
      { index: 0, refusal: repeated(1) },
      { index: 1, refusal: repeated(2) },
    ];
    const refused = { kind: "refused", refusals, currentRevs: [1, 2] };
    const operations = [one, other];
    const two = stores.slice(0, 2);
    expect(await raced((store) => store.transaction({ operations }), two)).toMatchObject([{ kind: "committed" }, refused]);
    const revs = await Promise.all([alone, one, other].map(({ resource }) => stores[0]?.read(resource)));
    expect(revs).toMatchObject([{ rev: 1 }, { rev: 1 }, { rev: 2 }]);
  }
});
