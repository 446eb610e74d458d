// Several resources, all or nothing, in one statement.
import type { WriteRequest } from "../../src/fence/verdict.js";
import type { StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { put, untilSomebodyWaits } from "../support/sql.js";

const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName("t"));

describe("a transaction", () => {
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

  test("G1 with one stale operation applies none, raises no fence, and names it", async ({ store }) => {
    const [a, b, c] = fresh(3) as [string, string, string];
    await store.write({ op: "seal", resource: b, token: 9 });
    expect(await store.transaction({ operations: [put(a, 8, "1"), put(b, 8, "1"), { op: "delete", resource: c, token: 8 }] })).toEqual({
      kind: "refused",
      refusals: [
        { index: 1, refusal: { kind: "stale", resource: b, presentedToken: 8, currentToken: 9 } },
        { index: 2, refusal: { kind: "not_found", resource: c } },
      ],
    });
    expect(await store.read(a)).toEqual({ kind: "unknown_resource", resource: a });
  });

  for (const { lease, token } of [
    { lease: "begins to write", token: 8 },
    { lease: "has written before", token: 1 },
  ])
    test(`G1 that loses one of its rows to a newer token while it waits applies none of the others, where its lease ${lease}`, async ({
      store,
      connect,
    }) => {
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
    });

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

  test("names the document that Postgres does not take", async ({ store }) => {
    const [a, b] = fresh(2) as [string, string];
    const verdict = await store.transaction({ operations: [put(a, 1, "1"), put(b, 1, '"\\u0000"')] });
    expect(verdict).toMatchObject({ kind: "refused", refusals: [{ index: 1, refusal: { kind: "value_rejected", resource: b } }] });
    expect(await store.read(a)).toMatchObject({ kind: "unknown_resource" });
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
    const [holder, observer] = [await connect(), await connect()];
    await holder.query("begin");
    await holder.query("select palisade.guard($1, 1)", [b]);
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
    const [holder, observer] = [await connect(), await connect()];
    await holder.query("begin");
    await holder.query("select palisade.guard($1, 1)", [held]);
    const sent = store.transaction({ operations: [put(held, 1, "2")] });
    await untilSomebodyWaits(observer);
    const queued = store.transaction({ operations: [put(waiting, 1, "1")] });
    expect(await store.transaction({ operations: [put(waiting, 1, "1")] })).toMatchObject({ kind: "unavailable", reason: "overloaded" });
    await store.close({ drainMs: 20 });
    expect(await sent).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    expect(await queued).toMatchObject({ kind: "unavailable", reason: "closing", outcome: "not_applied" });
    expect(await store.transaction({ operations: [put(waiting, 1, "1")] })).toMatchObject({ kind: "unavailable", reason: "closing" });
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
