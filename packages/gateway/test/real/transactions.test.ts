// Several resources in one statement and in one request: all of it or nothing, under one token or
// one each.
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { holderOf, put, untilSomebodyWaits } from "../support/sql.js";
import { type Answer, get, put as putAt, send } from "../support/wire.js";

const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName("t"));

describe("a transaction of the store", () => {
  test.for([
    { lease: "begins to write", token: 8 },
    { lease: "has written before", token: 1 },
  ])(
    "G1 that loses one of its rows to a newer token while it waits applies none of the others, where its lease $lease",
    async ({ token }, { store, connect }) => {
      const [a, b] = fresh(2).sort() as [string, string];
      await store.transaction({ operations: [put(a, 1, "1"), put(b, 1, "1")] });
      const [holder, observer] = [await connect(), await connect()];
      await holder.query("begin");
      await holder.query("select palisade.guard($1, 9)", [b]);
      const verdict = store.transaction({ operations: [put(a, token, "2"), put(b, token, "2")] });
      await untilSomebodyWaits(observer);
      await holder.query("commit");
      expect(await verdict).toMatchObject({ kind: "refused", refusals: [{ index: 1, refusal: { kind: "stale", currentToken: 9 } }] });
      expect(await store.read(a)).toMatchObject({ token: 1, rev: 1, value: "1" });
    },
  );

  test("G6 of a lease that was lost locks rows once, and from then on none", async ({ openStore, connect }) => {
    const [store, other, client] = [await openStore(), await openStore(), await connect()];
    const [a, b] = fresh(2).sort() as [string, string];
    const write = () => store.transaction({ operations: [put(a, 5, "1"), put(b, 5, "1")] });
    /** The last transaction that has locked or changed the row as it stands. */
    const lockedBy = async (): Promise<unknown> => {
      const { rows } = await client.query("select xmax::text as last from palisade.resources where resource = $1", [a]);
      return rows[0]?.last;
    };
    expect([await write(), await write()]).toMatchObject([{ kind: "committed" }, { kind: "committed" }]);
    expect(await lockedBy()).toBe("0");
    await other.write({ op: "seal", resource: b, token: 9 });
    const refused = { kind: "refused", refusals: [{ index: 1, refusal: { kind: "stale", currentToken: 9 } }] };
    expect(await write()).toMatchObject(refused);
    const once = await lockedBy();
    expect(once).not.toBe("0");
    expect([await write(), await write()]).toMatchObject([refused, refused]);
    expect(await lockedBy()).toBe(once);
    expect(await store.read(a)).toMatchObject({ rev: 2 });
  });

  test("locks its rows in the order of their names, so that no two can deadlock", async ({ store, connect }) => {
    const [a, b] = fresh(2).sort() as [string, string];
    await store.transaction({ operations: [put(a, 1, "1"), put(b, 1, "1")] });
    const [holder, observer] = [await holderOf(connect, b), await connect()];
    const verdict = store.transaction({ operations: [put(b, 1, "2"), put(a, 1, "2")] });
    await untilSomebodyWaits(observer);
    const first = observer.query("select from palisade.resources where resource = $1 for update nowait", [a]);
    await expect(first).rejects.toMatchObject({ code: "55P03" });
    await holder.query("commit");
    expect(await verdict).toMatchObject({ kind: "committed" });
  });

  test("G3 that waits when the store closes is not applied, and one that was sent is unknown", async ({ openStore, connect }) => {
    const store = await openStore({ statementsInFlight: 1, maxQueuedWrites: 2 });
    const [held, waiting] = fresh(2) as [string, string];
    await store.transaction({ operations: [put(held, 1, "1")] });
    const observer = await connect();
    await holderOf(connect, held);
    const sent = store.transaction({ operations: [put(held, 1, "2")] });
    await untilSomebodyWaits(observer);
    const another = () => store.transaction({ operations: [put(waiting, 1, "1")] });
    const queued = another();
    expect(await another()).toMatchObject({ kind: "unavailable", reason: "overloaded" });
    await store.close({ drainMs: 20 });
    expect(await sent).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    expect(await queued).toMatchObject({ kind: "unavailable", reason: "closing", outcome: "not_applied" });
    expect(await another()).toMatchObject({ kind: "unavailable", reason: "closing" });
  });
});

function transactText(url: string, body: string, ...headers: string[]): Promise<Answer> {
  return send(url, { method: "POST", path: "/v1/transactions", headers: ["Content-Type", "application/json", ...headers], body });
}
/** `token` is that of the header. */
function transact(url: string, operations: unknown, token?: string): Promise<Answer> {
  return transactText(url, JSON.stringify({ operations }), ...(token === undefined ? [] : ["Fencing-Token", token]));
}

describe("a transaction over HTTP", () => {
  test("stores everything under the token of the header", async ({ gateway: { url } }) => {
    const [one, other, third, fourth] = fresh(4) as [string, string, string, string];
    await putAt(url, other, { token: 4, value: { a: 1, b: 2 } });
    await putAt(url, third, { token: 4, value: {} });
    const operations = [
      { op: "put", resource: one, value: { n: 1 } },
      { op: "patch", resource: other, value: { b: null } },
      { op: "delete", resource: third },
      { op: "seal", resource: fourth },
    ];
    expect(await transact(url, operations, "5")).toMatchObject({
      status: 200,
      json: { results: [{ resource: one, token: 5, rev: 1 }, { rev: 2, value: { a: 1 } }, { rev: 2 }, { rev: 0, value: null }] },
    });
    expect(await get(url, one)).toMatchObject({ json: { n: 1 }, headers: { "fencing-token": "5" } });
    expect(await get(url, third)).toMatchObject({ status: 404 });
  });

  test("G1 with one stale operation stores nothing, and says that before other refusals", async ({ gateway: { url } }) => {
    const [one, other] = fresh(2) as [string, string];
    await putAt(url, other, { token: 9, value: { by: 9 } });
    for (const condition of [{}, { ifMatch: "*" }]) {
      const operations = [
        { op: "put", resource: one, ...condition, value: {} },
        { op: "put", resource: other, value: {} },
      ];
      expect(await transact(url, operations, "5")).toMatchObject({
        status: 412,
        json: { code: "fencing_token_stale", operation: 1, resource: other, presentedToken: 5, currentToken: 9 },
      });
    }
    expect(await get(url, one)).toMatchObject({ status: 404 });
    expect(await putAt(url, one, { token: 1, value: {} })).toMatchObject({ status: 201 });
  });

  test("may carry a token for each operation, and conditions", async ({ gateway: { url } }) => {
    const [one, other] = fresh(2) as [string, string];
    await putAt(url, one, { token: 4, value: {} });
    const operations = (rev: number | string) => [
      { op: "put", resource: one, token: 7, seq: 1, ifMatch: rev, value: {} },
      { op: "put", resource: other, token: 5, ifNoneMatch: "*", value: {} },
    ];
    const mismatch = { code: "etag_mismatch", operation: 0, currentETag: '"1"' };
    expect(await transact(url, operations(3))).toMatchObject({ status: 412, json: mismatch });
    const { status, json } = await transact(url, operations('"1"'));
    expect({ status, results: json.results }).toMatchObject({
      status: 200,
      results: [
        { token: 7, rev: 2 },
        { token: 5, rev: 1 },
      ],
    });
    expect(await transact(url, operations(2))).toMatchObject({ status: expect.toBeOneOf([409, 412]) });
  });

  test("G3 with a number is done once, and the repeated one is told so before all else", async ({ gateway: { url } }) => {
    const [one, other, third] = fresh(3) as [string, string, string];
    await putAt(url, one, { token: 4, value: {} });
    const operations = [
      { op: "put", resource: one, token: 5, ifMatch: 1, value: {} },
      { op: "put", resource: other, value: {} },
      { op: "seal", resource: third },
    ];
    const again = () => transact(url, operations, "5;seq=3");
    expect(await again()).toMatchObject({ status: 200, json: { results: [{ rev: 2 }, { rev: 1 }, { rev: 0 }] } });
    expect(await again()).toMatchObject({
      status: 409,
      json: { code: "sequence_out_of_order", operation: 1, currentSeq: 3, currentETag: '"1"', currentRevs: [2, 1, 0] },
    });
    expect(await get(url, other)).toMatchObject({ headers: { etag: '"1"' } });
  });

  test("that is malformed is refused with what is wrong", async ({ gateway: { url } }) => {
    const one = { op: "put", resource: "t/1", token: 5, value: 1 };
    const { value: _value, ...withoutValue } = one;
    const { token: _token, ...withoutToken } = one;
    const of = (...operations: unknown[]): string => JSON.stringify({ operations });
    const malformed: Readonly<Record<string, readonly string[]>> = {
      json_invalid: [
        "[]",
        "{}",
        '{"operations":[],"x":1}',
        '{"operations":[],"operations":[]}',
        of(),
        of(1),
        of({ ...one, op: "drop" }),
        of({ ...one, iff: 1 }),
        of(withoutValue),
        of({ ...one, op: "delete" }),
        of({ ...withoutValue, op: "seal", ifMatch: 1 }),
        '{"operations":[{"op":"put","resource":"t/1","resource":"t/2","token":5,"value":1}]}',
        '{"operations":[{"__proto__":{"token":5},"op":"put","resource":"t/1","value":1}]}',
        of(one, one),
        of(...Array.from({ length: 1_001 }, (_, n) => ({ ...one, resource: `t/${n}` }))),
        of({ ...one, token: "5" }),
        of({ ...one, token: 5.5 }),
        of({ ...one, token: 0 }),
      ],
      resource_name_invalid: [of({ ...one, resource: "a/../b" })],
      precondition_unsupported: [of({ ...one, ifMatch: 'W/"1"' }), of({ ...one, ifMatch: 1, ifNoneMatch: "*" })],
      fencing_token_required: [of(withoutToken)],
    };
    for (const [code, bodies] of Object.entries(malformed))
      for (const body of bodies) {
        const { status, json } = await transactText(url, body);
        expect({ body, status, code: json.code }).toEqual({ body, status: code === "fencing_token_required" ? 428 : 400, code });
      }
    expect(await transact(url, [one], "x")).toMatchObject({ json: { code: "fencing_token_malformed" } });
    expect(await transactText(url, of(one), "If-Match", '"1"')).toMatchObject({ json: { code: "precondition_unsupported" } });
    expect(await get(url, "t/1")).toMatchObject({ status: 404 });
  });
});
