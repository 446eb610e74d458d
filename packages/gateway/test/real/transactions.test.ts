// Several resources in one statement and in one request: all of it or nothing, under one token or
// one each.
import type { WriteRequest } from "../../src/fence/verdict.js";
import type { StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { holderOf, put, untilSomebodyWaits } from "../support/sql.js";
import { type Answer, get, put as putAt, send } from "../support/wire.js";

const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName("t"));

describe("a transaction of the store", () => {
  test("applies every operation and answers in their order, whatever they are", async ({ store }) => {
    const [a, b, c, d] = fresh(4).reverse() as [string, string, string, string];
    await store.transaction({ operations: [put(b, 1, '{"x":1}'), put(c, 1, "1"), put(d, 1, "1")] });
    const operations: WriteRequest[] = [
      put(a, 5, '"new"'),
      { op: "patch", resource: b, token: 6, value: '{"y":2}' },
      { op: "delete", resource: c, token: 7, expected: 1 },
      { op: "seal", resource: d, token: 8 },
    ];
    expect(await store.transaction({ operations })).toEqual({
      kind: "committed",
      results: [
        { kind: "accepted", resource: a, rev: 1, token: 5, created: true, deleted: false },
        { kind: "accepted", resource: b, rev: 2, token: 6, created: false, deleted: false, value: '{"x": 1, "y": 2}' },
        { kind: "accepted", resource: c, rev: 2, token: 7, created: false, deleted: true },
        { kind: "accepted", resource: d, rev: 1, token: 8, created: false, deleted: false, value: "1" },
      ],
    });
  });

  test("G1 with one stale operation applies none, raises no fence, and names all that are refused", async ({ store }) => {
    const [a, b, c, d] = fresh(4) as [string, string, string, string];
    await store.write({ op: "seal", resource: b, token: 9 });
    expect(await store.transaction({ operations: [put(a, 8, "1"), put(b, 8, "1"), { op: "delete", resource: c, token: 8 }] })).toEqual({
      kind: "refused",
      refusals: [
        { index: 1, refusal: { kind: "stale", resource: b, presentedToken: 8, currentToken: 9 } },
        { index: 2, refusal: { kind: "not_found", resource: c } },
      ],
    });
    const notForPostgres = await store.transaction({ operations: [put(a, 1, "1"), put(d, 1, '"\\u0000"')] });
    expect(notForPostgres).toMatchObject({ kind: "refused", refusals: [{ index: 1, refusal: { kind: "value_rejected", resource: d } }] });
    expect(await store.read(a)).toEqual({ kind: "unknown_resource", resource: a });
  });

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

  test("is all there or not there for every reader", async ({ openStore }) => {
    const [one, other] = [await openStore(), await openStore()];
    const resources = fresh(20);
    const write = (value: number) => one.transaction({ operations: resources.map((resource) => put(resource, 1, String(value))) });
    await write(0);
    let writing = true;
    const writer = (async () => {
      for (let value = 1; value <= 30; value += 1) await write(value);
      writing = false;
    })();
    while (writing) {
      const page = await other.list({ prefix: "t/", limit: 1_000, include: "documents" });
      const values =
        page.kind === "page" ? page.items.filter(({ resource }) => resources.includes(resource)).map(({ value }) => value) : [];
      expect(new Set(values).size).toBe(1);
    }
    await writer;
  });

  test("runs beside others over the same resources in any order without a deadlock", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const config = { statementsInFlight: 4, observe: (event: StoreEvent) => events.push(event) };
    const stores = [await openStore(config), await openStore(config)];
    const resources = fresh(30);
    const verdicts = await Promise.all(
      Array.from({ length: 40 }, (_, index) => {
        const operations = resources.map((resource) => put(resource, 1, String(index)));
        const turned = [...operations.slice(index % 30), ...operations.slice(0, index % 30)];
        return stores[index % 2]?.transaction({ operations: index % 3 === 0 ? turned.reverse() : turned });
      }),
    );
    expect(new Set(verdicts.map((verdict) => verdict?.kind))).toEqual(new Set(["committed"]));
    expect(await stores[0]?.read(resources[0] ?? "")).toMatchObject({ rev: 40 });
    expect(events).not.toContainEqual(expect.objectContaining({ code: "40P01" })); // A deadlock would have been run again unnoticed.
  });

  test("locks its rows in the order of their names, whatever their order in the request, so that no two can deadlock", async ({
    store,
    connect,
  }) => {
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

  test("G3 that waits for its turn when the store closes is not applied, and one that was sent is unknown", async ({
    openStore,
    connect,
  }) => {
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

  test("names each resource once; anything else is misuse and reaches no database", async ({ store }) => {
    const [a] = fresh(1) as [string];
    await expect(store.transaction({ operations: [put(a, 1, "1"), put(a, 2, "2")] })).rejects.toThrow(TypeError);
    await expect(store.transaction({ operations: [] })).rejects.toThrow(RangeError);
    await expect(store.transaction({ operations: [put(a, 0, "1")] })).rejects.toThrow(RangeError);
  });
});

test("every accepted write is in the history, and nothing else is", async ({ openStore }) => {
  const store = await openStore({ history: "on" });
  const [a, b] = fresh(2) as [string, string];
  await store.write({ op: "put", resource: a, token: 3, value: "1", seq: 2, holder: "worker-7" });
  await store.write({ op: "put", resource: a, token: 2, value: "1" });
  expect(await store.write({ op: "seal", resource: a, token: 4 })).toMatchObject({ kind: "accepted", rev: 1 });
  await store.transaction({ operations: [{ op: "patch", resource: a, token: 4, value: "{}" }, put(b, 1, "1")] });
  await store.transaction({ operations: [put(a, 4, "1"), { op: "delete", resource: b, token: 1, expected: 9 }] });
  await store.write({ op: "delete", resource: a, token: 5 });
  const history = await store.history({ resource: a, limit: 10 });
  expect(history).toMatchObject({
    nextBeforeRev: null,
    entries: [
      { rev: 3, op: "delete", token: 5, seq: 0, holder: null },
      { rev: 2, op: "patch", token: 4, seq: 0 },
      { rev: 1, op: "put", token: 3, seq: 2, holder: "worker-7", at: expect.any(Date) },
    ],
  });
  expect(await store.history({ resource: a, limit: 1, beforeRev: 3 })).toMatchObject({ entries: [{ rev: 2 }], nextBeforeRev: 2 });
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

  test("keeps every digit of its documents", async ({ gateway: { url } }) => {
    const name = uniqueName();
    await transactText(url, `{"operations": [ {"value" : {"n": 12345678901234567890}, "op":"put","resource":"${name}","token":5 } ] }`);
    expect((await get(url, name)).text).toBe('{"n": 12345678901234567890}');
  });

  test("G1 with one stale operation stores nothing, and says so, although another is refused for a reason that would pass", async ({
    gateway: { url },
  }) => {
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

  test("G3 with a number is done once, and the repeated one is told so, whatever else would refuse it now", async ({
    gateway: { url },
  }) => {
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
