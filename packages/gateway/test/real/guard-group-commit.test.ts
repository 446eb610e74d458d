// Concurrent writes share statements; a fault of one of them does not affect the others.
import { setImmediate as nextTurn } from "node:timers/promises";
import type pg from "pg";
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { untilSomebodyWaits } from "../support/sql.js";

type Batch = Extract<StoreEvent, { kind: "batch" }>;

function batchesIn(events: StoreEvent[]): Batch[] {
  return events.filter((event): event is Batch => event.kind === "batch");
}

function putMany(store: FencedStore, resources: readonly string[], token = 1): Promise<Verdict[]> {
  return Promise.all(resources.map((resource, index) => store.write({ op: "put", resource, token, value: String(index) })));
}

const lock = (client: pg.Client, resource: string) =>
  client.query("select from palisade.resources where resource = $1 for update", [resource]);
const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName());
const kinds = (verdicts: readonly Verdict[]): string[] => [...new Set(verdicts.map(({ kind }) => kind))];

describe("group commit", () => {
  test("sends the writes of one turn of the event loop as one statement", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    expect(kinds(await putMany(store, fresh(100)))).toEqual(["accepted"]);
    expect(batchesIn(events).map(({ rows }) => rows)).toEqual([100]);
  });

  test("sends a single write at the end of its turn, without waiting for others", async ({ store }) => {
    const verdict = store.write({ op: "put", resource: uniqueName(), token: 1, value: "1" });
    expect(store.stats().statementsInFlight).toBe(0);
    await nextTurn();
    expect(store.stats().statementsInFlight).toBe(1);
    expect(await verdict).toMatchObject({ kind: "accepted" });
  });

  test("keeps rows, bytes and statements in flight within their limits", async ({ openStore }) => {
    const events: StoreEvent[] = [];
    let most = 0;
    const observe = (event: StoreEvent) => {
      most = Math.max(most, store.stats().statementsInFlight);
      events.push(event);
    };
    const store = await openStore({ statementsInFlight: 3, maxBatchRows: 20, maxBatchBytes: 10_000, observe });
    await putMany(store, fresh(200));
    expect(Math.max(...batchesIn(events).map(({ rows }) => rows))).toBe(20);
    events.length = 0;
    const large = JSON.stringify("x".repeat(3_000));
    await Promise.all(fresh(12).map((resource) => store.write({ op: "put", resource, token: 1, value: large })));
    expect(batchesIn(events).map(({ rows }) => rows)).toEqual([3, 3, 3, 3]);
    expect(most).toBeLessThanOrEqual(3);
  });

  test("applies the writes of one resource in the order they came", async ({ store }) => {
    const resource = uniqueName();
    const verdicts = await putMany(
      store,
      Array.from({ length: 60 }, () => resource),
    );
    expect(verdicts.map((verdict) => verdict.kind === "accepted" && verdict.rev)).toEqual(
      Array.from({ length: 60 }, (_, index) => index + 1),
    );
    expect(await store.read(resource)).toMatchObject({ value: "59", rev: 60 });
  });

  test("lets one bad row fail alone", async ({ store }) => {
    const resources = fresh(20);
    const bad = uniqueName();
    const [refused, ...others] = await Promise.all([
      store.write({ op: "put", resource: bad, token: 1, value: '"\\u0000"' }),
      ...resources.map((resource) => store.write({ op: "put", resource, token: 1, value: "1" })),
    ]);
    expect(refused).toMatchObject({ kind: "value_rejected", resource: bad });
    expect(kinds(others)).toEqual(["accepted"]);
    expect(others.every((verdict) => verdict.kind === "accepted" && verdict.rev === 1)).toBe(true);
  });

  test("tells the refused rows of a batch why, and accepts the rest", async ({ store }) => {
    const [stale, mismatched, absent, fine] = [uniqueName(), uniqueName(), uniqueName(), uniqueName()];
    await putMany(store, [stale, mismatched], 9);
    const verdicts = await Promise.all([
      store.write({ op: "put", resource: stale, token: 8, value: "1" }),
      store.write({ op: "put", resource: mismatched, token: 9, value: "1", expected: 7 }),
      store.write({ op: "delete", resource: absent, token: 9 }),
      store.write({ op: "put", resource: fine, token: 9, value: "1" }),
    ]);
    expect(verdicts.map(({ kind }) => kind)).toEqual(["stale", "etag_mismatch", "not_found", "accepted"]);
  });
});

describe("a row that another open transaction holds", () => {
  test("fails alone with contention, and from then on delays no other row", async ({ openStore, connect }) => {
    const batches: { readonly rows: number; readonly sentAt: number; readonly answeredAt: number }[] = [];
    const observe = (event: StoreEvent): void => {
      const answeredAt = performance.now();
      if (event.kind === "batch") batches.push({ rows: event.rows, sentAt: answeredAt - event.durationMs, answeredAt });
    };
    const store = await openStore({ batchLockWaitMs: 60, statementsInFlight: 2, observe });
    const [held, ...others] = fresh(10) as [string, ...string[]];
    await putMany(store, [held]);
    const holder = await connect();
    await holder.query("begin");
    await lock(holder, held);
    const [contended, ...rest] = await putMany(store, [held, ...others], 2);
    expect(contended).toMatchObject({ kind: "contention", code: "55P03" });
    expect(kinds(rest)).toEqual(["accepted"]);

    batches.length = 0;
    const slow = store.write({ op: "put", resource: held, token: 2, value: "1" });
    const fast = putMany(store, others, 3);
    expect(await slow).toMatchObject({ kind: "contention" });
    expect(kinds(await fast)).toEqual(["accepted"]);
    expect(batches.map(({ rows }) => rows).sort()).toEqual([1, others.length]);
    const [waiting, passing] = [batches.find(({ rows }) => rows === 1), batches.find(({ rows }) => rows > 1)];
    expect(passing?.sentAt).toBeLessThan(waiting?.answeredAt ?? 0); // While the other still waited.

    await holder.query("rollback");
    expect(await store.write({ op: "put", resource: held, token: 2, value: "1" })).toMatchObject({ kind: "accepted" });
  });

  test("is written as soon as it is free", async ({ openStore, connect }) => {
    const store = await openStore();
    const resource = uniqueName();
    await putMany(store, [resource]);
    const [holder, observer] = [await connect(), await connect()];
    await holder.query("begin");
    await lock(holder, resource);
    const verdict = store.write({ op: "put", resource, token: 2, value: "1" });
    await untilSomebodyWaits(observer);
    await holder.query("commit");
    expect(await verdict).toMatchObject({ kind: "accepted", rev: 2 });
  });

  test("may deadlock with a batch: the batch is rolled back and retried, and every row is written", async ({
    openStore,
    connect,
    database,
  }) => {
    const [one, middle, two] = fresh(3).sort() as [string, string, string];
    const [user, other, admin] = [await connect(), await connect(), await connect()];
    await user.query("set deadlock_timeout = '10s'");
    await admin.query(`alter database "${database.name}" set deadlock_timeout = '20ms'`);
    const events: StoreEvent[] = [];
    const store = await openStore({ observe: (event) => events.push(event) });
    await putMany(store, [one, middle, two]);
    for (const [client, resource] of [
      [user, two],
      [other, middle],
    ] as const) {
      await client.query("begin");
      await lock(client, resource);
    }
    // The batch holds one row and waits for the middle one; the user, who holds two, waits for the
    // first; then the middle is freed, and the batch completes the deadlock.
    const verdicts = putMany(store, [one, middle, two], 2);
    await untilSomebodyWaits(admin);
    const waits = lock(user, one);
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
    expect(verdicts.slice(0, 10).every(({ kind }) => kind === "accepted")).toBe(true);
    expect(verdicts.slice(10)).toEqual(
      Array.from({ length: 5 }, () => ({ kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 })),
    );
    const value = JSON.stringify("x".repeat(600));
    const large = await Promise.all(fresh(3).map((resource) => store.write({ op: "put", resource, token: 1, value })));
    expect(large.map(({ kind }) => kind)).toEqual(["accepted", "unavailable", "unavailable"]);
    expect(store.stats()).toMatchObject({ queuedWrites: 0, queuedBytes: 0 });
  });

  test("does not send what has waited too long", async ({ openStore, connect }) => {
    const maxWaitMs = 500;
    const store = await openStore({ statementsInFlight: 1, maxWaitMs });
    const [held, late] = fresh(2) as [string, string];
    await putMany(store, [held]);
    const [holder, observer] = [await connect(), await connect()];
    await holder.query("begin");
    await lock(holder, held);
    const first = store.write({ op: "put", resource: held, token: 2, value: "1" });
    await untilSomebodyWaits(observer);
    const verdict = store.write({ op: "put", resource: late, token: 1, value: "1" });
    expect(await verdict).toMatchObject({ kind: "unavailable", reason: "overloaded", outcome: "not_applied" });
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
    const [holder, observer] = [await connect(), await connect()];
    await holder.query("begin");
    await lock(holder, held);
    const verdicts = putMany(store, [held, ...others], 2);
    await untilSomebodyWaits(observer);
    await store.close({ drainMs: 20 });
    const [sent, ...waiting] = await verdicts;
    expect(sent).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    expect(waiting.map((verdict) => verdict.kind === "unavailable" && verdict.reason)).toEqual(["closing", "closing", "closing"]);
  });
});
