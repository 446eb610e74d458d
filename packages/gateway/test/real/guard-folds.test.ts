// Puts that wait for one resource are one row of a statement (decision 0008). Nobody can tell: the
// answers, the row, its history and the changes are those of the same writes one after the other.
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import type pg from "pg";
import type { Verdict, WriteRequest } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { cutWaitingSessions, untilSomebodyWaits } from "../support/sql.js";

const NOT_FOR_POSTGRES = '"\\u0000"';

function puts(resource: string, count: number, rest: Partial<WriteRequest> = {}): WriteRequest[] {
  return Array.from({ length: count }, (_, index) => ({ op: "put", resource, token: 1, value: String(index), ...rest }));
}

const writeAll = (store: FencedStore, requests: readonly WriteRequest[]): Promise<Verdict[]> =>
  Promise.all(requests.map((request) => store.write(request)));

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
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    const resource = uniqueName();
    const verdicts = await writeAll(store, puts(resource, 60));
    expect(events.flatMap((event) => (event.kind === "batch" ? [event.rows] : []))).toEqual([60]);
    const told = verdicts.map((verdict) => (verdict.kind === "accepted" ? [verdict.rev, verdict.created] : verdict));
    expect(told).toEqual(Array.from({ length: 60 }, (_, index) => [index + 1, index === 0]));
    expect(await store.read(resource)).toMatchObject({ value: "59", rev: 60 });
  });

  test("G3 have an entry of the history each, with their holder", async ({ openStore }) => {
    const store = await openStore({ history: "on" });
    const resource = uniqueName();
    await writeAll(store, [...puts(resource, 30, { holder: "one" }), ...puts(resource, 2, { holder: "other" })]);
    const holders = [...Array.from({ length: 2 }, () => "other"), ...Array.from({ length: 30 }, () => "one")];
    expect(await store.history({ resource, limit: 100 })).toMatchObject({
      entries: holders.map((holder, index) => ({ rev: 32 - index, op: "put", token: 1, holder })),
    });
  });

  test("G1 below the fence are all refused by one statement", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    const resource = uniqueName();
    await store.write({ op: "put", resource, token: 9, value: '"newer"' });
    events.length = 0;
    const stale = { kind: "stale", resource, presentedToken: 1, currentToken: 9 };
    expect(await writeAll(store, puts(resource, 20))).toEqual(Array.from({ length: 20 }, () => stale));
    expect(events).toEqual([expect.objectContaining({ kind: "batch", rows: 20 })]);
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
    const accepted = await writeAll(store, puts(resource, 20));
    expect(accepted.map((verdict) => verdict.kind === "accepted" && verdict.rev)).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
    expect(questions).toBe(1);
    const forged = await writeAll(store, puts(resource, 20, { token: 100 }));
    expect(new Set(forged.map(({ kind }) => kind))).toEqual(new Set(["token_unissued"]));
    expect(await store.read(resource)).toMatchObject({ token: 1, rev: 20 });
  });

  test("G3 one of which Postgres cannot keep are refused only that one", async ({ store }) => {
    const resource = uniqueName();
    const requests = puts(resource, 9).map((put, index) => (index === 4 ? { ...put, value: NOT_FOR_POSTGRES } : put));
    const verdicts = await writeAll(store, requests);
    const told = verdicts.map((verdict) => (verdict.kind === "accepted" ? verdict.rev : verdict.kind));
    expect(told).toEqual([1, 2, 3, 4, "value_rejected", 5, 6, 7, 8]);
    expect(await store.read(resource)).toMatchObject({ value: "8", rev: 8 });
  });

  test("G3 whose session ends under way are each told that nobody knows, and none is sent again", async ({ openStore, connect }) => {
    const store = await openStore({ history: "on" });
    const [holder, observer] = [await connect(), await connect()];
    const resource = uniqueName();
    await store.write({ op: "put", resource, token: 1, value: '"before"' });
    await holder.query("begin");
    await holder.query("select from palisade.resources where resource = $1 for update", [resource]);
    const verdicts = writeAll(store, puts(resource, 10));
    await untilSomebodyWaits(observer);
    await cutWaitingSessions(observer);
    expect(new Set((await verdicts).map(({ kind }) => kind))).toEqual(new Set(["outcome_unknown"]));
    await holder.query("rollback");
    expect(await store.read(resource)).toMatchObject({ value: '"before"', rev: 1 });
  });

  test("G6 for a row that another session holds are stored in their order once it is free", async ({ openStore, connect }) => {
    const store = await openStore({ history: "on" });
    const [holder, observer] = [await connect(), await connect()];
    const resource = uniqueName();
    await store.write({ op: "put", resource, token: 1, value: '"before"' });
    await holder.query("begin");
    await holder.query("select from palisade.resources where resource = $1 for update", [resource]);
    const verdicts = writeAll(store, puts(resource, 10));
    await untilSomebodyWaits(observer);
    expect(await store.write({ op: "put", resource: uniqueName(), token: 1, value: "1" })).toMatchObject({ kind: "accepted" });
    await holder.query("commit");
    expect((await verdicts).map((verdict) => verdict.kind === "accepted" && verdict.rev)).toEqual(
      Array.from({ length: 10 }, (_, i) => i + 2),
    );
    expect(await store.read(resource)).toMatchObject({ value: "9", rev: 11 });
  });
});
