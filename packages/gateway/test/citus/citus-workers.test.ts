import { recover } from "../../src/recover.js";
import { expect, put, testWith } from "./cluster.js";

const test = testWith({ workers: 2, links: "proxied" });

test("many writes at once take no second phase of commit, and a transaction over two workers does", async ({ own, open }) => {
  await own.query("alter system set citus.recover_2pc_interval = '1h'");
  await own.query("select pg_catalog.pg_reload_conf()");
  // Each worker that takes part in a second phase has a record there.
  const phases = async () => Number((await own.query("select count(*) from pg_catalog.pg_dist_transaction"))[0]?.count);
  const before = await phases();
  const store = await open();
  const names = await Promise.all(Array.from({ length: 60 }, (_, index) => own.nameOn(index % 2)));
  const write = (token: number) => Promise.all(names.map((name) => put(store, name, token)));
  for (const token of [1, 2]) expect((await write(token)).every(({ kind }) => kind === "accepted")).toBe(true);
  expect(await phases()).toBe(before);
  const operations = [names[0], names[1]].map((resource) => ({ op: "put", resource: String(resource), token: 3, value: "3" }) as const);
  expect(await store.transaction({ operations })).toMatchObject({ kind: "committed" });
  expect(await phases()).toBe(before + 2);
});

test("G3 lists say that they are no snapshot, and a transaction over workers is atomic for a reader of one", async ({ own, open }) => {
  const store = await open();
  expect(await store.list({ prefix: "none/", limit: 10 })).toEqual({ kind: "page", items: [], nextCursor: null, snapshot: false });
  const [a, b] = [await own.nameOn(0), await own.nameOn(1)];
  const operations = [a, b].map((resource) => ({ op: "put", resource, token: 5, value: "1" }) as const);
  expect(await store.transaction({ operations })).toMatchObject({ kind: "committed" });
  // One is stale: neither is written.
  const stale = operations.map((operation, index) => ({ ...operation, token: index === 0 ? 6 : 4 }));
  const refusals = [{ index: 1, refusal: { kind: "stale" } }];
  expect(await store.transaction({ operations: stale })).toMatchObject({ kind: "refused", refusals });
  expect([await store.read(a), await store.read(b)]).toMatchObject([
    { token: 5, rev: 1 },
    { token: 5, rev: 1 },
  ]);
});

test("G7 a recovery whose floor no trigger would keep is refused, and changes nothing", async ({ own }) => {
  const lock = { mark: async () => 0, highestToken: async () => 1_000, listResources: async () => [] };
  const recovery = { databaseUrl: own.url, lock, by: "a test", reason: "none" };
  await expect(recover({ ...recovery, lost: "unknown" })).rejects.toThrow("--nothing-lost");
  expect(await own.query("select fence_floor from palisade.lineage")).toEqual([{ fence_floor: "0" }]);
  expect(await recover({ ...recovery, lost: "nothing" })).toMatchObject({ raised: 0, fenceFloor: 0 });
});

test("G7 a lineage that was loaded from a dump stops what is written and read on all workers, until the recovery", async ({
  own,
  open,
}) => {
  const marks = new Map<string, number>();
  const mark = async (name: string, atLeast: number) => {
    const highest = Math.max(marks.get(name) ?? 0, atLeast);
    marks.set(name, highest);
    return highest;
  };
  const store = await open({ marks: { mark } });
  const names = [await own.nameOn(0), await own.nameOn(1)];
  for (const name of names) expect(await put(store, name, 5)).toMatchObject({ kind: "accepted" });
  // Written by another transaction than it names, as a loaded row is.
  await own.query("update palisade.lineage set id = id");
  const refused = { kind: "unavailable", reason: "not_recovered" };
  for (const name of names) expect(await put(store, name, 5)).toMatchObject(refused);
  const operations = names.map((resource) => ({ op: "put", resource, token: 5, value: "1" }) as const);
  expect(await store.transaction({ operations })).toMatchObject(refused);
  expect(await store.raiseFence({ resource: String(names[0]), token: 6, by: "me", reason: "why" })).toMatchObject(refused);
  for (const name of names) expect(await store.read(name)).toMatchObject(refused);
  const lock = { mark, highestToken: async () => 1_000, listResources: async () => [] };
  await recover({ databaseUrl: own.url, lock, by: "a test", reason: "none", lost: "nothing" });
  for (const name of names) expect(await put(store, name, 5)).toMatchObject({ kind: "accepted" });
});

test("G6 with one worker killed, resources of the other are written at once, and those of it once it is back", async ({ own, open }) => {
  const store = await open();
  const [dead, living] = [await own.nameOn(0), await own.nameOn(1)];
  for (const name of [dead, living]) expect(await put(store, name, 1)).toMatchObject({ kind: "accepted" });
  await own.cluster.workers[0]?.crash();
  const onDead = Promise.all(Array.from({ length: 20 }, async () => put(store, await own.nameOn(0), 1)));
  const startedAt = performance.now();
  for (let rev = 2; rev < 12; rev += 1) expect(await put(store, living, rev)).toMatchObject({ kind: "accepted", rev });
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  for (const verdict of await onDead) expect(verdict).toMatchObject({ kind: "unavailable", outcome: "not_applied" });
  const { ready, checks } = await store.ready();
  expect({ ready, check: checks.find(({ name }) => name === "workers") }).toMatchObject({ ready: true, check: { status: "warning" } });
  await own.cluster.workers[0]?.restart();
  await expect.poll(() => put(store, dead, 2), { timeout: 20_000 }).toMatchObject({ kind: "accepted", rev: 2 });
});

test("G6 with one worker cut off, so that nothing answers, resources of the other are written all the while", async ({ own, open }) => {
  const store = await open({ writeTimeoutMs: 5_000, maxWaitMs: 5_000 });
  const [silent, living] = [await own.nameOn(0), await own.nameOn(1)];
  for (const name of [silent, living]) await expect.poll(() => put(store, name, 1)).toMatchObject({ kind: "accepted" });
  await own.cluster.links[0]?.partition();
  const onSilent = Promise.all(Array.from({ length: 8 }, async () => put(store, await own.nameOn(0), 1)));
  for (let token = 2; token < 12; token += 1) expect(await put(store, living, token)).toMatchObject({ kind: "accepted", token });
  for (const verdict of await onSilent) expect(verdict.kind).toMatch(/^(unavailable|outcome_unknown|contention)$/);
  await own.cluster.links[0]?.heal();
  await expect.poll(() => put(store, silent, 2), { timeout: 20_000 }).toMatchObject({ kind: "accepted" });
});
