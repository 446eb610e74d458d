// Rows that another session holds, and writes that take too long, delay nobody else: their own
// connections wait for them, and every wait of the gateway ends by a timer of its own.
import type pg from "pg";
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { put } from "../support/statement.js";
import { type Connect, describe, expect, test, uniqueName, untilSomebodyWaits } from "../support/store.js";

/** As they are by default, whatever the other tests use. */
const defaults = { lockWaitMs: 500, batchLockWaitMs: 100, maxWaitMs: 5_000, statementsInFlight: 2 } as const;
const shorter = { ...defaults, lockWaitMs: 200, batchLockWaitMs: 50 } as const;

const write = (store: FencedStore, resource: string, token = 5): Promise<Verdict> => store.write(put(resource, token, "1"));

/** Another session, in a transaction that holds the rows until it ends. */
async function holderOf(connect: Connect, ...resources: readonly string[]): Promise<pg.Client> {
  const holder = await connect();
  await holder.query("begin");
  for (const resource of resources) await holder.query("select palisade.guard($1, 5)", [resource]);
  return holder;
}

const fresh = (count: number): string[] => Array.from({ length: count }, () => uniqueName("slow"));

/** Answers of callers that send `one` again and again, until there are `count` of them. */
async function retrying<T>(callers: number, count: number, one: (caller: number) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  const caller = async (_: unknown, index: number) => {
    while (answers.length < count) answers.push(await one(index));
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return answers;
}

describe("G6 rows that open transactions hold", () => {
  test("G6 stop no write of another resource, however often their own writes are sent again", async ({ openStore, connect }) => {
    const store = await openStore(shorter);
    const held = fresh(2);
    await Promise.all(held.map((resource) => write(store, resource)));
    for (const resource of held) await holderOf(connect, resource);
    let over = false;
    const callers = retrying(4, 32, (caller) => write(store, held[caller % 2] ?? "")).finally(() => {
      over = true;
    });
    let others = 0;
    while (!over) {
      expect((await write(store, uniqueName())).kind).toBe("accepted");
      if (!over) others += 1;
    }
    expect(new Set((await callers).map(({ kind }) => kind))).toEqual(new Set(["contention"]));
    expect(others).toBeGreaterThan(32);
  });

  test("G6 do not fail the neighbours of their batch, and are found in one go", async ({ openStore, connect }) => {
    const batches: number[] = [];
    const observe = (event: StoreEvent) => void (event.kind === "batch" && batches.push(event.rows));
    const store = await openStore({ ...defaults, lockWaitMs: 5_000, observe });
    const [held, others] = [fresh(20), fresh(20)];
    await Promise.all([...held, ...others].map((resource) => write(store, resource)));
    const holder = await holderOf(connect, ...held);
    batches.length = 0;
    const contended = held.map((resource) => write(store, resource));
    const passed = await Promise.all(others.map((resource) => write(store, resource)));
    expect(new Set(passed.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
    expect(batches).toEqual([40, 20]);
    await holder.query("commit");
    const freed = await Promise.all(contended);
    expect(new Set(freed.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
    expect(freed.every((verdict) => verdict.kind === "accepted" && verdict.rev === 2)).toBe(true);
  });

  test("G6 that were just created delay no neighbour that is new as well", async ({ openStore, connect }) => {
    const store = await openStore({ ...defaults, lockWaitMs: 5_000 });
    const [held = "", ...others] = fresh(20);
    const holder = await holderOf(connect, held);
    const contended = write(store, held);
    const passed = await Promise.all(others.map((resource) => write(store, resource)));
    expect(new Set(passed.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
    await holder.query("commit");
    expect(await contended).toMatchObject({ kind: "accepted", rev: 1 });
  });

  test("G6 starve no other transaction, though forty want one of them, nor a row that is free again", async ({ openStore, connect }) => {
    const store = await openStore({ ...shorter, maxWaitMs: 3_000 });
    const [held, freed, free] = fresh(3) as [string, string, string];
    await Promise.all([held, freed].map((resource) => write(store, resource)));
    await holderOf(connect, held);
    const holder = await holderOf(connect, freed);
    expect(await write(store, freed)).toMatchObject({ kind: "contention" });
    let answered = 0;
    const forty = Array.from({ length: 40 }, async () => {
      const verdict = await store.transaction({ operations: [put(held, 5, "1")] });
      answered += 1;
      return verdict;
    });
    expect(await store.transaction({ operations: [put(free, 5, "1")] })).toMatchObject({ kind: "committed" });
    expect(answered).toBeLessThanOrEqual(2);
    await holder.query("commit");
    expect(await write(store, freed)).toMatchObject({ kind: "accepted" });
    expect(answered).toBeLessThanOrEqual(4);
    expect(new Set((await Promise.all(forty)).map(({ kind }) => kind))).toEqual(new Set(["refused"]));
  });

  test("G6 a fence of another resource is moved by hand meanwhile", async ({ openStore, connect }) => {
    const store = await openStore({ ...defaults, statementsInFlight: 1, lockWaitMs: 5_000 });
    const [held, free] = fresh(2) as [string, string];
    await write(store, held);
    const holder = await holderOf(connect, held);
    const raised = store.raiseFence({ resource: held, token: 9, by: "me", reason: "why" });
    expect(await store.raiseFence({ resource: free, token: 9, by: "me", reason: "why" })).toMatchObject({ kind: "changed" });
    await holder.query("commit");
    expect(await raised).toMatchObject({ kind: "changed", previousToken: 5 });
  });
});

describe("G6 a wait ends by its own timer", () => {
  test("G6 behind another write of a held row", async ({ openStore, connect }) => {
    const store = await openStore({ ...defaults, maxWaitMs: 200, lockWaitMs: 20_000 });
    const [held] = fresh(1) as [string];
    await write(store, held);
    const [holder, observer] = [await holderOf(connect, held), await connect()];
    const first = write(store, held);
    await untilSomebodyWaits(observer);
    expect(await write(store, held)).toMatchObject({ kind: "contention", code: "55P03" });
    await holder.query("commit");
    expect(await first).toMatchObject({ kind: "accepted" });
    expect(store.stats()).toMatchObject({ queuedWrites: 0, queuedBytes: 0 });
  });

  test("G6 behind a transaction of a held row", async ({ openStore, connect }) => {
    const store = await openStore({ ...defaults, maxWaitMs: 200, lockWaitMs: 20_000, statementsInFlight: 1 });
    const [held] = fresh(1) as [string];
    await write(store, held);
    const [holder, observer] = [await holderOf(connect, held), await connect()];
    const operations = [put(held, 5, "1")];
    const first = store.transaction({ operations });
    await untilSomebodyWaits(observer);
    expect(await store.transaction({ operations })).toMatchObject({ kind: "refused", refusals: [{ refusal: { kind: "contention" } }] });
    await holder.query("commit");
    expect(await first).toMatchObject({ kind: "committed" });
  });
});

describe("G6 a write that takes longer than Postgres's timer allows", () => {
  test("G6 is refused alone, and from then on fails no neighbour", async ({ openStore, connect }) => {
    const batches: number[] = [];
    const observe = (event: StoreEvent) => void (event.kind === "batch" && batches.push(event.rows));
    const store = await openStore({ ...defaults, statementTimeoutMs: 300, observe });
    const [poison, ...others] = fresh(20) as [string, ...string[]];
    const admin = await connect();
    await admin.query(`create function slow_write() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
      create trigger slow_write before insert or update on palisade.resources
        for each row when (new.resource = '${poison}') execute function slow_write()`);
    const [refused, ...neighbours] = await Promise.all([poison, ...others].map((resource) => write(store, resource)));
    expect(refused).toMatchObject({ kind: "unavailable", reason: "refused", outcome: "not_applied", cause: { code: "57014" } });
    expect(new Set(neighbours.map(({ kind }) => kind))).toEqual(new Set(["accepted"]));
    batches.length = 0;
    await Promise.all([poison, ...others].map((resource) => write(store, resource)));
    expect(batches.sort()).toEqual([1, others.length]);
    await admin.query("drop trigger slow_write on palisade.resources");
    expect(await write(store, poison)).toMatchObject({ kind: "accepted", rev: 1 });
  });
});
