// Rows that another session holds, and writes that take too long, delay nobody else. Waits for a row
// are made long here, so that a write that waited for the row of another cannot be taken for one
// that did not.
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { describe, expect, test, uniqueName } from "../support/fixtures.js";
import { holderOf, put, untilSomebodyWaits } from "../support/sql.js";

const write = (store: FencedStore, resource: string, token = 5): Promise<Verdict> => store.write(put(resource, token, "1"));
const transact = (store: FencedStore, resource: string) => store.transaction({ operations: [put(resource, 5, "1")] });

const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName("row"));
const kinds = (answers: readonly { readonly kind: string }[]): string[] => [...new Set(answers.map(({ kind }) => kind))];
const contention = { kind: "contention", code: "55P03" };

async function timed<T>(work: Promise<T>): Promise<{ readonly answer: T; readonly ms: number }> {
  const sentAt = performance.now();
  const answer = await work;
  return { answer, ms: performance.now() - sentAt };
}

describe("G6 rows that open transactions hold", () => {
  const waitMs = 1_200;

  test("G6 delay no write of another resource, however often their own writes are sent again", async ({ openStore, connect }) => {
    const store = await openStore({ batchLockWaitMs: waitMs });
    const held = fresh(2);
    await Promise.all(held.map((resource) => write(store, resource)));
    for (const resource of held) await holderOf(connect, resource);
    expect(kinds(await Promise.all(held.map((resource) => write(store, resource))))).toEqual(["contention"]);
    const contended: Verdict[] = [];
    let isOver = false;
    const callers = Array.from({ length: 8 }, async (_, caller) => {
      while (!isOver) contended.push(await write(store, held[caller % 2] ?? ""));
    });
    const startedAt = performance.now();
    const others: number[] = [];
    while (performance.now() - startedAt < 1.5 * waitMs) {
      const { answer, ms } = await timed(write(store, uniqueName()));
      expect(answer).toMatchObject({ kind: "accepted" });
      others.push(ms);
    }
    isOver = true;
    await Promise.all(callers);
    expect(kinds(contended)).toEqual(["contention"]);
    expect(others.length).toBeGreaterThan(16);
    expect(Math.max(...others)).toBeLessThan(waitMs);
  });

  test("G6 do not fail the neighbours of their batch, and are found in one go", async ({ openStore, connect }) => {
    const batches: number[] = [];
    const observe = (event: StoreEvent) => void (event.kind === "batch" && batches.push(event.rows));
    const store = await openStore({ batchLockWaitMs: 100, observe });
    const [held, others] = [fresh(20), fresh(20)];
    await Promise.all([...held, ...others].map((resource) => write(store, resource)));
    const holder = await holderOf(connect, ...held);
    batches.length = 0;
    const contended = held.map((resource) => write(store, resource));
    const passed = await Promise.all(others.map((resource) => write(store, resource)));
    expect(kinds(passed)).toEqual(["accepted"]);
    expect(kinds(await Promise.all(contended))).toEqual(["contention"]);
    expect(batches).toEqual([40, 20]);
    await holder.query("commit");
    const freed = await Promise.all(held.map((resource) => write(store, resource)));
    expect(freed).toMatchObject(held.map(() => ({ kind: "accepted", rev: 2 })));
    batches.length = 0;
    await Promise.all([...held, ...others].map((resource) => write(store, resource)));
    expect(batches).toEqual([40]);
  });

  test("G6 that were just created delay no neighbour that is new as well", async ({ openStore, connect }) => {
    const store = await openStore({ batchLockWaitMs: 100 });
    const [held = "", ...others] = fresh(20);
    const holder = await holderOf(connect, held);
    const contended = write(store, held);
    expect(kinds(await Promise.all(others.map((resource) => write(store, resource))))).toEqual(["accepted"]);
    expect(await contended).toMatchObject(contention);
    await holder.query("commit");
    expect(await write(store, held)).toMatchObject({ kind: "accepted", rev: 1 });
  });

  test("G6 are told to all who wait for them at once, and not to who comes later", async ({ openStore, connect }) => {
    const store = await openStore({ batchLockWaitMs: waitMs });
    const [held = ""] = fresh(1);
    await write(store, held);
    const holder = await holderOf(connect, held);
    const waiting = Array.from({ length: 10 }, (_, n) => store.write({ ...put(held, 5, "1"), seq: n + 1 }));
    const { answer, ms } = await timed(Promise.all(waiting));
    expect(kinds(answer)).toEqual(["contention"]);
    expect(ms).toBeLessThan(2 * waitMs);
    await holder.query("commit");
    expect(await write(store, held)).toMatchObject({ kind: "accepted", rev: 2 });
  });

  test("G6 delay no other transaction for longer than one wait, though forty want one of them", async ({ openStore, connect }) => {
    const store = await openStore({ batchLockWaitMs: waitMs });
    const [held = "", free = ""] = fresh(2);
    await Promise.all([held, free].map((resource) => write(store, resource)));
    await holderOf(connect, held);
    const forty = timed(Promise.all(Array.from({ length: 40 }, () => transact(store, held))));
    const first = await timed(transact(store, free));
    expect(first.answer).toMatchObject({ kind: "committed" });
    expect(first.ms).toBeLessThan(2 * waitMs);
    // Postgres may wait twice: for its turn at the row, and then for the row.
    expect((await forty).ms).toBeLessThan(3 * waitMs);
    expect((await forty).answer).toMatchObject(
      Array.from({ length: 40 }, () => ({ kind: "refused", refusals: [{ refusal: contention }] })),
    );
  });

  test("G6 a fence of another resource is moved by hand meanwhile", async ({ openStore, connect }) => {
    const store = await openStore({ statementsInFlight: 1, batchLockWaitMs: 500 });
    const [held = "", free = ""] = fresh(2);
    await write(store, held);
    const holder = await holderOf(connect, held);
    const change = { token: 9, by: "me", reason: "why" };
    const raised = store.raiseFence({ ...change, resource: held });
    expect(await store.raiseFence({ ...change, resource: free })).toMatchObject({ kind: "changed" });
    expect(await raised).toMatchObject(contention);
    await holder.query("commit");
    expect(await store.raiseFence({ ...change, resource: held })).toMatchObject({ kind: "changed", previousToken: 5 });
  });
});

test("G6 a row that many want in one gateway is not taken for one that another session holds", async ({ openStore }) => {
  const store = await openStore({ batchLockWaitMs: 2_000 });
  const [resource = ""] = fresh(1);
  await write(store, resource);
  const writes = Array.from({ length: 300 }, (_, n) => store.write({ ...put(resource, 6, "1"), seq: n + 1 }));
  const transactions = Array.from({ length: 20 }, () => store.transaction({ operations: [put(resource, 6, "2")] }));
  expect(kinds(await Promise.all(writes))).toEqual(["accepted"]);
  expect(kinds(await Promise.all(transactions))).toEqual(["committed"]);
});

test.for([
  ["another write", write],
  ["a transaction", transact],
] as const)("G6 a wait behind %s of a held row ends by its own timer", async ([, send], { openStore, connect }) => {
  const store = await openStore({ maxWaitMs: 200, batchLockWaitMs: 18_000, statementsInFlight: 1 });
  const [held = ""] = fresh(1);
  await write(store, held);
  const [holder, observer] = [await holderOf(connect, held), await connect()];
  const first = send(store, held);
  await untilSomebodyWaits(observer);
  expect(await send(store, held)).toMatchObject({ kind: "unavailable", reason: "overloaded", outcome: "not_applied" });
  await holder.query("commit");
  expect((await first).kind).toBeOneOf(["accepted", "committed"]);
  expect(store.stats()).toMatchObject({ queuedWrites: 0, queuedBytes: 0 });
});

test("G6 a write that takes longer than Postgres's timer allows is refused alone, and then fails no neighbour", async ({
  openStore,
  connect,
}) => {
  const batches: number[] = [];
  const observe = (event: StoreEvent) => void (event.kind === "batch" && batches.push(event.rows));
  const store = await openStore({ statementTimeoutMs: 300, batchLockWaitMs: 100, observe });
  const [poison = "", ...others] = fresh(20);
  const admin = await connect();
  await admin.query(`create function slow_write() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
    create trigger slow_write before insert or update on palisade.resources
      for each row when (new.resource = '${poison}') execute function slow_write()`);
  const [refused, ...neighbours] = await Promise.all([poison, ...others].map((resource) => write(store, resource)));
  expect(refused).toMatchObject({ kind: "unavailable", reason: "refused", outcome: "not_applied", cause: { code: "57014" } });
  expect(kinds(neighbours)).toEqual(["accepted"]);
  batches.length = 0;
  await Promise.all([poison, ...others].map((resource) => write(store, resource)));
  expect(batches.sort()).toEqual([1, others.length]);
  await admin.query("drop trigger slow_write on palisade.resources");
  expect(await write(store, poison)).toMatchObject({ kind: "accepted", rev: 1 });
});
