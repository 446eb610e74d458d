// What the statement accepts, refuses and stores, one write at a time and through the store as a
// gateway uses it.
import type { Verdict, WriteRequest } from "../../src/fence/verdict.js";
import type { FencedStore } from "../../src/fenced-store.js";
import { refusalOf, type StoredState } from "../../src/write/refusal.js";
import { runStatement, ways } from "../support/statement.js";
import { describe, expect, test, uniqueName } from "../support/store.js";

type Write = (token: number, rest?: Partial<WriteRequest>) => Promise<Verdict>;

function putter(store: FencedStore, resource: string): Write {
  return (token, rest = {}) => store.write({ op: "put", resource, token, value: String(token), ...rest });
}

describe("G1 one resource", () => {
  test("G1 takes higher and equal tokens, and refuses a lower one without a trace", async ({ store }) => {
    const resource = uniqueName();
    const put = putter(store, resource);
    expect(await put(34)).toEqual({ kind: "accepted", resource, rev: 1, token: 34, created: true, deleted: false });
    expect(await put(34)).toMatchObject({ kind: "accepted", rev: 2, created: false });
    expect(await put(36)).toMatchObject({ kind: "accepted", rev: 3, token: 36 });
    const before = await store.read(resource);
    expect(await put(35)).toEqual({ kind: "stale", resource, presentedToken: 35, currentToken: 36 });
    expect(await store.read(resource)).toEqual(before);
  });

  test("G1 deleted, it still refuses a lower token, and its revision goes on where it was", async ({ store }) => {
    const resource = uniqueName();
    const put = putter(store, resource);
    await put(34);
    expect(await store.write({ op: "delete", resource, token: 35 })).toMatchObject({
      kind: "accepted",
      rev: 2,
      deleted: true,
      created: false,
    });
    expect(await put(34)).toMatchObject({ kind: "stale", currentToken: 35 });
    expect(await store.read(resource)).toMatchObject({ kind: "absent", token: 35, rev: 2 });
    expect(await put(35)).toMatchObject({ kind: "accepted", rev: 3, created: true });
    expect(await put(35)).toMatchObject({ kind: "accepted", rev: 4, created: false });
  });

  test("G1 sealed, it refuses lower tokens from then on, and its document and revision stay what they were", async ({ store }) => {
    const resource = uniqueName();
    const put = putter(store, resource);
    await put(34, { value: '{"a":1}' });
    expect(await store.write({ op: "seal", resource, token: 35 })).toMatchObject({
      kind: "accepted",
      rev: 1,
      token: 35,
      value: '{"a": 1}',
    });
    expect(await put(34)).toMatchObject({ kind: "stale", currentToken: 35 });
    expect(await put(35, { expected: 1 })).toMatchObject({ kind: "accepted", rev: 2 });
  });

  test("G1 sealed before its first write, it is created by the first write", async ({ store }) => {
    const resource = uniqueName();
    expect(await store.write({ op: "seal", resource, token: 35 })).toMatchObject({ rev: 0, deleted: true, value: null });
    expect(await store.read(resource)).toMatchObject({ kind: "absent", token: 35, rev: 0 });
    expect(await putter(store, resource)(34)).toMatchObject({ kind: "stale" });
    expect(await putter(store, resource)(35, { expected: "absent" })).toMatchObject({ kind: "accepted", rev: 1, created: true });
  });

  test("G1 a refused condition does not raise the fence", async ({ store }) => {
    const resource = uniqueName();
    const put = putter(store, resource);
    await put(34);
    expect(await put(40, { expected: 9 })).toEqual({ kind: "etag_mismatch", resource, currentRev: 1 });
    expect(await put(35)).toMatchObject({ kind: "accepted" });
  });
});

test("the sequence rises within one token and starts again with the next", async ({ store }) => {
  const resource = uniqueName();
  const put = putter(store, resource);
  expect(await put(34, { seq: 7 })).toMatchObject({ kind: "accepted" });
  for (const seq of [7, 6]) expect(await put(34, { seq })).toMatchObject({ kind: "sequence_out_of_order", resource, currentSeq: 7 });
  expect(await put(34, { seq: 9 })).toMatchObject({ kind: "accepted" });
  expect(await put(34)).toMatchObject({ kind: "accepted" });
  expect(await put(34, { seq: 9 })).toMatchObject({ kind: "sequence_out_of_order", currentSeq: 9 });
  expect(await put(35, { seq: 1 })).toMatchObject({ kind: "accepted" });
  expect(await store.read(resource)).toMatchObject({ seq: 1, rev: 4 });
});

test("patch and delete need a document; stale is said before anything else", async ({ store }) => {
  const resource = uniqueName();
  const [patch, remove] = [{ op: "patch", resource, token: 34, value: "{}" } as const, { op: "delete", resource, token: 34 } as const];
  for (const write of [patch, remove]) {
    expect(await store.write(write)).toEqual({ kind: "not_found", resource });
    expect(await store.write({ ...write, expected: 1 })).toEqual({ kind: "etag_mismatch", resource, currentRev: null });
  }
  expect(await store.read(resource)).toMatchObject({ kind: "unknown_resource" });
  await store.write({ op: "seal", resource, token: 35 });
  for (const write of [patch, remove]) expect(await store.write({ ...write, expected: 1 })).toMatchObject({ kind: "stale" });
});

// Every request against every kind of row: the statement in SQL and its explanation in TypeScript
// must agree.
for (const way of ways)
  test(`G1 the statement accepts exactly what its explanation calls admissible, for every kind of row and request (rows: ${way})`, async ({
    connect,
  }) => {
    const client = await connect();
    const states: (StoredState | undefined)[] = [undefined];
    for (const token of [4, 5, 6])
      for (const seq of [0, 3])
        for (const [rev, deleted] of [
          [0, true],
          [2, true],
          [2, false],
        ] as const)
          states.push({ token, seq, rev, deleted });
    const requests: Omit<WriteRequest, "resource">[] = [];
    for (const seq of [undefined, 2, 3, 4]) {
      requests.push({ op: "seal", token: 5, seq });
      for (const expected of [undefined, "absent", "present", 1, 2] as const) {
        requests.push(
          { op: "put", token: 5, seq, expected, value: "1" },
          { op: "patch", token: 5, seq, expected, value: "1" },
          { op: "delete", token: 5, seq, expected },
        );
      }
    }
    const cases = states.flatMap((state) => requests.map((request) => ({ state, request: { ...request, resource: uniqueName("case") } })));
    const stored = cases.flatMap(({ state, request }) => (state === undefined ? [] : [{ ...state, resource: request.resource }]));
    await client.query(
      `insert into palisade.resources (resource, token, seq, rev, born, op, deleted, value, updated_at)
       select resource, token, seq, rev, 0, 'put', deleted, case when deleted then null else '1'::jsonb end, now()
       from jsonb_to_recordset($1) as stored(resource text, token bigint, seq bigint, rev bigint, deleted boolean)`,
      [JSON.stringify(stored)],
    );
    const accepted = await runStatement({ client, way }, ...cases.map(({ request }) => request));
    const admissible = cases.filter(
      ({ state, request }) => refusalOf(request, "verified", state).kind === "admissible" && (way.startsWith("any") || state !== undefined),
    );
    expect(accepted.sort()).toEqual(admissible.map(({ request }) => request.resource).sort());
    expect(cases.length).toBe(19 * 64);
  });

describe("documents", () => {
  test("keep every digit of every number", async ({ store }) => {
    const resource = uniqueName();
    const text = '{"a": 12345678901234567890, "b": 0.1234567890123456789, "c": 1.000, "d": -9007199254740993}';
    await store.write({ op: "put", resource, token: 1, value: text });
    expect(await store.read(resource)).toMatchObject({ value: text });
  });

  test("that JSON allows and Postgres does not are refused, and nothing is stored", async ({ store }) => {
    for (const value of ['{"a":"\\u0000"}', '"\\ud800"', "1e200000", "{", "nonsense", ""]) {
      const resource = uniqueName();
      expect(await store.write({ op: "put", resource, token: 1, value })).toMatchObject({ kind: "value_rejected" });
      expect(await store.read(resource)).toMatchObject({ kind: "unknown_resource" });
    }
  });

  test("may be null, which is a document and not its absence", async ({ store }) => {
    const resource = uniqueName();
    expect(await store.write({ op: "put", resource, token: 1, value: "null" })).toMatchObject({ kind: "accepted", deleted: false });
    expect(await store.read(resource)).toMatchObject({ kind: "found", value: "null" });
  });

  test("and names come back as they went in, whatever characters they have", async ({ store }) => {
    const odd = ['a"b', "a\\b", "{a,b}", "null", "NULL", "é/ü", "𝄞", "a b", "'", "$1", "%", "_", "\u{10ffff}"];
    for (const text of odd) {
      const resource = `${uniqueName()}/${text}`;
      const value = JSON.stringify(text);
      expect(await store.write({ op: "put", resource, token: 1, value, holder: text })).toMatchObject({ kind: "accepted" });
      expect(await store.read(resource)).toMatchObject({ kind: "found", resource, value, holder: text });
    }
  });
});
