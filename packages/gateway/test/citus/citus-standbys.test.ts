// Workers with synchronous standbys: what a worker could not replicate is not acknowledged.
import { expect, type OwnCluster, put, testWith } from "./cluster.js";

const test = testWith({ workers: 2, standbys: "sync" }, "sync");

const operator = { by: "alice", reason: "test" };
const WAITING = "select pid from pg_catalog.pg_stat_activity where wait_event = 'SyncRep'";

async function cancelWaits(own: OwnCluster, worker: number): Promise<void> {
  await expect.poll(async () => (await own.onWorker(worker, WAITING)).length, { interval: 5 }).toBeGreaterThan(0);
  await own.onWorker(worker, `select pg_catalog.pg_cancel_backend(pid) from (${WAITING}) as waiting`);
}

test("G3 a worker's cancelled wait for its standby leaves the write unknown", async ({ own, open }) => {
  const store = await open();
  const [one, other] = [await own.nameOn(0), await own.nameOn(1)];
  expect(await put(store, one, 1)).toMatchObject({ kind: "accepted" });
  expect(await put(store, other, 1)).toMatchObject({ kind: "accepted" });
  await own.cluster.pairs[0]?.replication.partition();
  const write = put(store, one, 2);
  await cancelWaits(own, 0);
  expect(await write).toMatchObject({ kind: "outcome_unknown", reason: "not_replicated" });
  // The other worker has its standby.
  expect(await put(store, other, 2)).toMatchObject({ kind: "accepted" });
  await own.cluster.pairs[0]?.replication.heal();
  await own.cluster.pairs[0]?.joined();
  expect(await put(store, one, 3)).toMatchObject({ kind: "accepted" });
});

test("readiness names the worker whose standby is away, and stays for the others", async ({ own, open }) => {
  const store = await open();
  const workers = async () => (await store.ready()).checks.find(({ name }) => name === "workers");
  expect(await workers()).toMatchObject({ status: "warning", detail: expect.stringContaining("fsync") });
  await own.cluster.pairs[0]?.standby.crash();
  const away = { status: "warning", detail: expect.stringContaining("no synchronous standby is connected") };
  await expect.poll(workers, { timeout: 20_000 }).toMatchObject(away);
  await own.cluster.pairs[0]?.standby.restart();
  await own.cluster.pairs[0]?.joined();
  await expect.poll(workers, { timeout: 20_000 }).not.toMatchObject(away);
});

test("G3 a worker that waits for no standby is not written through and moves no fence, and the others are", async ({ own, open }) => {
  const store = await open();
  const [without, other] = [await own.nameOn(0), await own.nameOn(1)];
  await own.onWorker(0, "alter system set synchronous_standby_names = ''");
  await own.onWorker(0, "select pg_catalog.pg_reload_conf()");
  await expect.poll(() => put(store, without, 1)).toMatchObject({ kind: "unavailable", reason: "not_durable" });
  expect(await store.raiseFence({ resource: without, token: 9, ...operator })).toMatchObject({
    kind: "unavailable",
    reason: "not_durable",
  });
  expect(await store.read(without)).toMatchObject({ kind: "unknown_resource" });
  expect(await put(store, other, 1)).toMatchObject({ kind: "accepted" });
  await own.onWorker(0, "alter system reset synchronous_standby_names");
  await own.onWorker(0, "select pg_catalog.pg_reload_conf()");
  await expect.poll(() => put(store, without, 1)).toMatchObject({ kind: "accepted" });
});

// The last test of this cluster, which does not demand a standby of the coordinator any more.
test("G3 a worker's cancelled wait for its standby leaves the move of a fence unknown", async ({ own, open }) => {
  const store = await open({ durability: "local" });
  const resource = await own.nameOn(0);
  // The number of its record comes from a sequence of the coordinator, which would wait for a standby as well.
  await own.query("alter system reset synchronous_standby_names");
  await own.query("select pg_catalog.pg_reload_conf()");
  expect(await store.raiseFence({ resource, token: 1, ...operator })).toMatchObject({ kind: "changed" });
  await own.cluster.pairs[0]?.replication.partition();
  const move = store.raiseFence({ resource, token: 2, ...operator });
  await cancelWaits(own, 0);
  expect(await move).toMatchObject({ kind: "outcome_unknown", reason: "not_replicated" });
});
