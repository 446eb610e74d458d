// A failover must not forget a fence. A real primary and a real standby with a proxy between them;
// the asynchronous pair is the control that forgets.

import { migrate } from "@palisade/guard/schema";
import { PostgresPair, queryAt } from "@palisade/testkit";
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore } from "../../src/fenced-store.js";
import { fencedWrite } from "../../src/write/statement.js";
import { test as base, expect, type OpenStore, uniqueName } from "../support/fixtures.js";
import { plainForm, statementValues } from "../support/sql.js";

async function startPair(replication: "sync" | "async"): Promise<PostgresPair> {
  const pair = await PostgresPair.start({ replication });
  await migrate(pair.primary.url);
  return pair;
}

const test = base
  .extend("pair", { scope: "file" }, async ({ postgres: _shared }, { onCleanup }): Promise<PostgresPair> => {
    const pair = await startPair("sync");
    onCleanup(() => pair.stop());
    return pair;
  })
  .extend("open", ({ pair, openStore }): OpenStore => {
    return (config) => openStore({ databaseUrl: pair.primary.url, durability: "sync", statementsInFlight: 1, ...config });
  })
  .extend(
    "query",
    ({ pair }) =>
      (text: string) =>
        queryAt(pair.primary.url, text),
  )
  /** Work while the standby is away. */
  .extend("whileAway", ({ pair }) => async (work: () => Promise<void>): Promise<void> => {
    await pair.replication.partition();
    await work();
    await pair.replication.heal();
    await pair.joined();
  });

const put = (store: FencedStore, resource: string, token: number): Promise<Verdict> =>
  store.write({ op: "put", resource, token, value: String(token) });
const durabilityOf = async (store: FencedStore) => (await store.ready()).checks.find(({ name }) => name === "durability");

const WAITING = "from pg_stat_activity where wait_event = 'SyncRep'";
const CANCEL_WAITS = `select pg_cancel_backend(pid) ${WAITING}`;

test("G3 a cancelled wait for the standby is answered as unknown; a refusal does not wait", async ({ open, query, whileAway }) => {
  const store = await open();
  const [resource, other] = [uniqueName(), uniqueName()];
  await put(store, other, 2);
  await whileAway(async () => {
    const verdict = put(store, resource, 1);
    await expect.poll(async () => (await query(`select pid ${WAITING}`)).length, { interval: 5 }).toBe(1);
    await query(CANCEL_WAITS);
    expect(await verdict).toMatchObject({ kind: "outcome_unknown", reason: "not_replicated" });
    expect(await store.read(resource)).toMatchObject({ kind: "found" }); // On the primary; not yet on the standby.
    expect(await put(store, other, 1)).toMatchObject({ kind: "stale", currentToken: 2 });
  });
});

test("G3 a retry is not told that its first try is stored before the standby has it", async ({ open, query, whileAway }) => {
  const [alone, together, patched] = [uniqueName(), uniqueName(), uniqueName()];
  const numbered = { op: "put", resource: alone, token: 1, seq: 7, value: "1" } as const;
  const transaction = { operations: [{ ...numbered, resource: together }] };
  const patch = { op: "patch", resource: patched, token: 1, seq: 7, value: '{"a":1}' } as const;
  // Answered within its time before it is committed, or it is known not to be applied.
  const patient = await open({ writeTimeoutMs: 1_000, statementTimeoutMs: 20_000 });
  await put(patient, patched, 1);
  const store = await open({ writeTimeoutMs: 150, statementTimeoutMs: 20_000, statementsInFlight: 3 });
  const attempts = () => Promise.all([store.write(numbered), store.transaction(transaction), patient.write(patch)]);
  const allUnknown = ["outcome_unknown", "outcome_unknown", "outcome_unknown"];
  await whileAway(async () => {
    expect((await attempts()).map(({ kind }) => kind)).toEqual(allUnknown);
    // Ending the wait makes the first tries visible, although the standby still lacks them.
    const found = async () => {
      await query(CANCEL_WAITS);
      return await Promise.all([alone, together, patched].map((name) => store.read(name)));
    };
    await expect.poll(found, { interval: 5 }).toMatchObject([{ kind: "found" }, { kind: "found" }, { value: '{"a": 1}' }]);
    // With so short a timeout a busy gateway may not get to ask why a retry was refused, and then
    // answers this retry as not applied, which is true.
    const told = new Set<string>();
    const again = async () => {
      const kinds = (await attempts()).map(({ kind }) => kind);
      for (const kind of kinds) told.add(kind);
      return kinds;
    };
    await expect.poll(again, { interval: 5 }).toEqual(allUnknown);
    told.delete("unavailable");
    expect([...told]).toEqual(["outcome_unknown"]);
  });
  // With so short a timeout a busy machine may answer "unknown" once more, which is true as well
  // and may be retried.
  await expect.poll(attempts, { interval: 5, timeout: 20_000 }).toMatchObject([
    { kind: "sequence_out_of_order", currentSeq: 7, currentRev: 1 },
    { kind: "refused", refusals: [{ refusal: { kind: "sequence_out_of_order", currentSeq: 7 } }], currentRevs: [1] },
    { kind: "sequence_out_of_order", currentSeq: 7, currentRev: 2 },
  ]);
});

test("G3 the statement writes nothing in a transaction that would not wait for standby or disk", async ({ pair, connect }) => {
  const client = await connect(pair.primary.url);
  const accepts = async (durability: "local" | "sync", setting: string): Promise<boolean> => {
    await client.query(`set synchronous_commit = '${setting}'`);
    const { text } = fencedWrite({ ...plainForm, rows: "any", durability });
    return (await client.query(text, statementValues([{ op: "put", resource: uniqueName(), token: 1, value: "1" }]))).rowCount === 1;
  };
  for (const setting of ["off", "local", "remote_write"]) expect([setting, await accepts("sync", setting)]).toEqual([setting, false]);
  for (const setting of ["on", "remote_apply"]) expect([setting, await accepts("sync", setting)]).toEqual([setting, true]);
  expect([await accepts("local", "off"), await accepts("local", "local")]).toEqual([false, true]);
});

test("G3 where standbys are switched off under a gateway, its statements refuse, and it is not ready", async ({ pair, open, query }) => {
  const store = await open();
  const resource = uniqueName();
  const move = (moved: string) => store.raiseFence({ resource: moved, token: 9, by: "alice", reason: "test" });
  await put(store, resource, 1);
  await move(uniqueName()); // Opens the connection.
  expect(await durabilityOf(store)).toMatchObject({ status: "ok", detail: expect.stringContaining("1 synchronous standby") });
  const shown = async () => (await query("show synchronous_standby_names"))[0]?.synchronous_standby_names;
  const names = String(await shown());
  const demand = async (value: string) => {
    await query(`alter system set synchronous_standby_names = '${value}'`);
    await query("select pg_reload_conf()");
    await expect.poll(shown, { interval: 5 }).toBe(value);
  };
  await demand("");
  const refused = { kind: "unavailable", reason: "not_durable" };
  await expect.poll(() => put(store, uniqueName(), 1), { interval: 5 }).toMatchObject(refused);
  expect(await put(store, resource, 2)).toMatchObject({ ...refused, outcome: "not_applied" });
  expect(await store.transaction({ operations: [{ op: "seal", resource, token: 3 }] })).toMatchObject(refused);
  expect(await move(resource)).toMatchObject(refused);
  expect(await put(await open(), resource, 2)).toMatchObject(refused);
  expect([await store.ready(), await durabilityOf(store)]).toMatchObject([{ ready: false }, { status: "failed" }]);
  const local = await open({ durability: "local" });
  expect([await local.ready(), await durabilityOf(local)]).toMatchObject([{ ready: true }, { status: "warning" }]);
  expect(await store.read(resource)).toMatchObject({ token: 1, rev: 1 });
  await demand(names);
  await pair.joined();
  await expect.poll(() => put(store, resource, 2), { interval: 5 }).toMatchObject({ kind: "accepted" });
  expect(await move(resource)).toMatchObject({ kind: "changed" });
});

// The last test of this pair: afterwards there are two primaries.
test("G1 a failover keeps the fence: 35 was acknowledged, so the promoted standby refuses 34", async ({ pair, open }) => {
  const resource = uniqueName();
  expect(await put(await open(), resource, 35)).toMatchObject({ kind: "accepted" });
  await pair.primary.crash();
  await pair.promote();
  const after = await open({ databaseUrl: pair.standby.url, durability: "local" });
  expect(await put(after, resource, 34)).toMatchObject({ kind: "stale", currentToken: 35 });
  expect(await after.read(resource)).toMatchObject({ value: "35" });
});

test("control: with asynchronous replication the promoted standby lets 34 in after 35", async ({ openStore, onTestFinished }) => {
  const pair = await startPair("async");
  onTestFinished(() => pair.stop());
  const resource = uniqueName();
  const store = await openStore({ databaseUrl: pair.primary.url });
  await put(store, resource, 33);
  await pair.caughtUp();
  await pair.replication.partition();
  expect(await put(store, resource, 35)).toMatchObject({ kind: "accepted" });
  await pair.primary.crash();
  await pair.promote();
  expect(await put(await openStore({ databaseUrl: pair.standby.url }), resource, 34)).toMatchObject({ kind: "accepted" });
});

test("G3 commits are acknowledged only when flushed, whatever the server is set to", async ({ database, connect, openStore }) => {
  const owner = await connect();
  await owner.query(`alter database "${database.name}" set synchronous_commit = off`);
  // The setting of a session can be seen only from within it: the statement writes it into a row
  // through a trigger.
  await owner.query(`create table seen (setting text); create function see() returns trigger language plpgsql as
    'begin insert into public.seen values (current_setting(''synchronous_commit'')); return new; end';
    create trigger see before insert on palisade.resources for each row execute function see()`);
  expect(await put(await openStore(), uniqueName(), 1)).toMatchObject({ kind: "accepted" });
  expect((await owner.query("select setting from seen")).rows).toEqual([{ setting: "on" }]);
});
