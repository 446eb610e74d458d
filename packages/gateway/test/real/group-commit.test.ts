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
  test("sends the writes of one turn of the event loop as one statement", async ({ openStore }) => {
    const { rows, observe } = batches();
    const store = await openStore({ observe });
    expect(kinds(await putMany(store, fresh(100)))).toEqual(["accepted"]);
    expect(rows).toEqual([100]);
  });

  test("sends a single write at the end of its turn, without waiting for others", async ({ store }) => {
    const verdict = store.write(put(uniqueName(), 1, "1"));
    expect(store.stats().statementsInFlight).toBe(0);
    await nextTurn();
    expect(store.stats().statementsInFlight).toBe(1);
    expect(await verdict).toMatchObject({ kind: "accepted" });
  });

  test("keeps rows, bytes and statements in flight within their limits", async ({ openStore }) => {
    const { rows, observe } = batches();
    let most = 0;
    const store = await openStore({
      statementsInFlight: 3,
      maxBatchRows: 20,
      maxBatchBytes: 10_000,
      observe: (event) => {
        most = Math.max(most, store.stats().statementsInFlight);
        observe(event);
      },
    });
    await putMany(store, fresh(200));
    expect(Math.max(...rows)).toBe(20);
    rows.length = 0;
    const large = JSON.stringify("x".repeat(3_000));
    await writeAll(
      store,
      fresh(12).map((resource) => put(resource, 1, large)),
    );
    expect(rows).toEqual([3, 3, 3, 3]);
    expect(most).toBeLessThanOrEqual(3);
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
    for (const { resource, value, holder = null } of requests)
      expect(await store.read(resource)).toMatchObject({ kind: "found", resource, value, holder });
    for (const value of ['"\\ud800"', "1e200000", "{", "nonsense", ""])
      expect(await store.write(put(uniqueName(), 1, value)), value).toMatchObject({ kind: "value_rejected" });
  });

  test("may deadlock with another session: the batch is rolled back and retried, and every row is written", async ({
    openStore,
    connect,
    database,
  }) => {
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
    const value = JSON.stringify("x".repeat(600));
    const large = await Promise.all(fresh(3).map((resource) => store.write(put(resource, 1, value))));
    expect(large.map(({ kind }) => kind)).toEqual(["accepted", "unavailable", "unavailable"]);
    expect(store.stats()).toMatchObject({ queuedWrites: 0, queuedBytes: 0 });
  });

  test("does not send what has waited too long", async ({ openStore, connect }) => {
    const store = await openStore({ statementsInFlight: 1, maxWaitMs: 300 });
    const [held, late] = fresh(2) as [string, string];
    await putMany(store, [held]);
    const [holder, observer] = [await holderOf(connect, held), await connect()];
    const first = store.write(put(held, 2, "1"));
    await untilSomebodyWaits(observer);
    expect(await store.write(put(late, 1, "1"))).toMatchObject({ kind: "unavailable", reason: "overloaded", outcome: "not_applied" });
    await holder.query("commit");
    expect(await first).toMatchObject({ kind: "accepted" });
    expect(await store.read(late)).toMatchObject({ kind: "unknown_resource" });
  });

  test("is emptied before the store closes, and takes nothing more", async ({ openStore }) => {
    const store = await openStore({ maxBatchRows: 5, statementsInFlight: 1 });
    const accepted = putMany(store, fresh(50));
    const closed = store.close();
    expect(kinds(await putMany(store, fresh(2)))).toEqual(["unavailable"]);
    expect(kinds(await accepted)).toEqual(["accepted"]);
    await closed;
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
  test("G3 are answered and remembered as if they had come one after the other, whatever waits between them", async ({
    openStore,
    connect,
  }) => {
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

  test("G3 have an entry of the history each, with their holder", async ({ openStore }) => {
    const store = await openStore({ history: "on" });
    const resource = uniqueName();
    await writeAll(store, [...puts(resource, 30, { holder: "one" }), ...puts(resource, 2, { holder: "other" })]);
    const entries = upTo(32).map((rev) => ({ rev, op: "put", token: 1, holder: rev > 30 ? "other" : "one" }));
    expect(await store.history({ resource, limit: 100 })).toMatchObject({ entries: entries.toReversed() });
  });

  test("G1 below the fence are all refused by one statement", async ({ openStore }) => {
    const { rows, observe } = batches();
    const store = await openStore({ observe });
    const resource = uniqueName();
    await store.write(put(resource, 9, '"newer"'));
    rows.length = 0;
    const stale = { kind: "stale", resource, presentedToken: 1, currentToken: 9 };
    expect(await writeAll(store, puts(resource, 20))).toEqual(Array.from({ length: 20 }, () => stale));
    expect(rows).toEqual([20]);
    expect(await store.read(resource)).toMatchObject({ value: '"newer"', rev: 1 });
  });

  test("G4 with a new token are verified by one question, and none is stored when the lock never issued it", async ({ openStore }) => {
    let questions = 0;
    const verify = async (_resource: string, token: number) => {
      questions += 1;
      return token < 100 ? "issued" : "unissued";
    };
    const store = await openStore({ verify });
    const resource = uniqueName();
    expect(revsOf(await writeAll(store, puts(resource, 20)))).toEqual(upTo(20));
    expect(questions).toBe(1);
    expect(kinds(await writeAll(store, puts(resource, 20, { token: 100 })))).toEqual(["token_unissued"]);
    expect(await store.read(resource)).toMatchObject({ token: 1, rev: 20 });
  });

  test("G3 one of which Postgres cannot keep are refused only that one", async ({ store }) => {
    const resource = uniqueName();
    const requests = puts(resource, 9).map((each, index) => (index === 4 ? { ...each, value: NOT_FOR_POSTGRES } : each));
    expect(revsOf(await writeAll(store, requests))).toEqual([1, 2, 3, 4, "value_rejected", 5, 6, 7, 8]);
    expect(await store.read(resource)).toMatchObject({ value: "8", rev: 8 });
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

  test("G6 for a row that another session holds are stored in their order once it is free", async ({ openStore, connect }) => {
    const store = await openStore({ history: "on" });
    const resource = uniqueName();
    await store.write(put(resource, 1, '"before"'));
    const [holder, observer] = [await holderOf(connect, resource), await connect()];
    const verdicts = writeAll(store, puts(resource, 10));
    await untilSomebodyWaits(observer);
    expect(await store.write(put(uniqueName(), 1, "1"))).toMatchObject({ kind: "accepted" });
    await holder.query("commit");
    expect(revsOf(await verdicts)).toEqual(upTo(11, 2));
    expect(await store.read(resource)).toMatchObject({ value: "9", rev: 11 });
  });
});

const numbered = (resource: string, seq = 1): WriteRequest => ({ ...put(resource, 5, "1"), seq });
const kindsOf = (verdicts: readonly (Verdict | TransactionVerdict)[]) => verdicts.map(({ kind }) => kind).sort();

describe("a write with a number", () => {
  test("G3 that is repeated finds its number and its revision stored, through any gateway, and is not applied again", async ({
    openStore,
  }) => {
    const [one, other] = [await openStore(), await openStore()];
    const resource = uniqueName();
    for (const seq of [1, 2]) expect(await one.write(numbered(resource, seq))).toMatchObject({ kind: "accepted", rev: seq });
    const repeated = { kind: "sequence_out_of_order", resource, currentSeq: 2, currentRev: 2 };
    for (const seq of [2, 1]) expect(await other.write(numbered(resource, seq))).toEqual(repeated);
    await one.write({ op: "seal", resource, token: 6 });
    expect(await one.write(numbered(resource, 3))).toMatchObject({ kind: "stale", currentToken: 6 });
    expect(await one.read(resource)).toMatchObject({ rev: 2 });
  });

  test("G3 raced through three gateways is applied exactly once, and the others are told so", async ({ openStore }) => {
    const stores = [await openStore(), await openStore(), await openStore()];
    const requests = Array.from({ length: 25 }, () => numbered(uniqueName(), 7));
    const answers = await Promise.all(requests.map((request) => Promise.all(stores.map((store) => store.write(request)))));
    for (const [index, verdicts] of answers.entries()) {
      expect(kindsOf(verdicts)).toEqual(["accepted", "sequence_out_of_order", "sequence_out_of_order"]);
      for (const verdict of verdicts) if (verdict.kind !== "accepted") expect(verdict).toMatchObject({ currentSeq: 7, currentRev: 1 });
      expect(await stores[0]?.read(requests[index]?.resource ?? "")).toMatchObject({ rev: 1 });
    }
  });

  test("that is repeated is found without a failed statement, so that the other writes of the batch pass", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    const first = numbered(uniqueName());
    await store.write(first);
    const verdicts = await writeAll(store, [first, numbered(uniqueName()), numbered(uniqueName())]);
    expect(verdicts.map(({ kind }) => kind)).toEqual(["sequence_out_of_order", "accepted", "accepted"]);
    expect(events).toEqual([expect.objectContaining({ rows: 1, outcome: "ok" }), expect.objectContaining({ rows: 3, outcome: "ok" })]);
  });
});

describe("a transaction with a number", () => {
  test("G3 raced through two gateways is applied once, and the other is told its number and the revisions", async ({ openStore }) => {
    const stores = [await openStore(), await openStore()];
    for (let round = 0; round < 10; round += 1) {
      const [a, b] = [uniqueName(), uniqueName()];
      await stores[0]?.write(put(b, 1, "0"));
      const operations = [numbered(a), numbered(b)];
      const verdicts = await Promise.all(stores.map((store) => store.transaction({ operations })));
      expect(kindsOf(verdicts)).toEqual(["committed", "refused"]);
      expect(verdicts.find(({ kind }) => kind === "refused")).toMatchObject({
        refusals: [
          { index: 0, refusal: { kind: "sequence_out_of_order", currentSeq: 1, currentRev: 1 } },
          { index: 1, refusal: { kind: "sequence_out_of_order", currentSeq: 1, currentRev: 2 } },
        ],
        currentRevs: [1, 2],
      });
      expect([await stores[0]?.read(a), await stores[0]?.read(b)]).toMatchObject([{ rev: 1 }, { rev: 2 }]);
    }
  });

  test("G3 is applied once although only one of its operations has a number", async ({ store }) => {
    const [a, b] = [uniqueName(), uniqueName()];
    const operations = [put(a, 5, "1"), numbered(b), { op: "seal", resource: uniqueName(), token: 5 } as const];
    expect(await store.transaction({ operations })).toMatchObject({ kind: "committed" });
    expect(await store.transaction({ operations })).toMatchObject({
      kind: "refused",
      refusals: [{ index: 1, refusal: { kind: "sequence_out_of_order", currentSeq: 1 } }],
      currentRevs: [1, 1, 0],
    });
    expect([await store.read(a), await store.read(b)]).toMatchObject([{ rev: 1 }, { rev: 1 }]);
  });
});
