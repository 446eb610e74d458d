// A failover must not forget a fence. A real primary and a real standby with a proxy between them;
// the asynchronous pair is the control that forgets.
import { PostgresPair } from "@palisade/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@palisade/testkit/vitest";
import pg from "pg";
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore } from "../../src/fenced-store.js";
import { openStore, type StoreConfig } from "../../src/fenced-store.js";
import { migrate } from "../../src/store/migrate.js";
import { fencedWrite } from "../../src/write/statement.js";
import { longTimeouts, uniqueName } from "../support/fixtures.js";
import { plainForm, statementValues } from "../support/sql.js";

const stores: FencedStore[] = [];
const pairs: PostgresPair[] = [];

async function startPair(replication: "sync" | "async"): Promise<PostgresPair> {
  const pair = await PostgresPair.start({ replication });
  pairs.push(pair);
  await migrate(pair.primary.url);
  return pair;
}

async function open(databaseUrl: string, config: Partial<StoreConfig> = {}): Promise<FencedStore> {
  const store = await openStore({ databaseUrl, durability: "sync", statementsInFlight: 1, ...longTimeouts, ...config });
  stores.push(store);
  return store;
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

const put = (store: FencedStore, resource: string, token: number): Promise<Verdict> =>
  store.write({ op: "put", resource, token, value: String(token) });
const checkOf = async (store: FencedStore, name: string) => (await store.ready()).checks.find((check) => check.name === name);

afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close({ drainMs: 0 })));
  await Promise.all(pairs.map((pair) => pair.replication.heal()));
});
afterAll(async () => {
  await Promise.all(pairs.map((pair) => pair.stop()));
});

describe("with synchronous replication", () => {
  let pair: PostgresPair;
  let store: FencedStore;
  beforeAll(async () => {
    pair = await startPair("sync");
  });

  test("the gateway is ready and says what it waits for", async () => {
    store = await open(pair.primary.url);
    expect(await store.ready()).toMatchObject({ ready: true });
    expect(await checkOf(store, "durability")).toMatchObject({ status: "ok", detail: expect.stringContaining("1 synchronous standby") });
  });

  test("G3 a cancelled wait for the standby succeeds with a mere WARNING, and is answered as unknown", async () => {
    store = await open(pair.primary.url);
    await put(store, uniqueName(), 1);
    await pair.replication.partition();
    const resource = uniqueName();
    const verdict = put(store, resource, 1);
    const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
    await expect.poll(async () => (await query(pair.primary.url, waiting)).length, { interval: 5 }).toBe(1);
    await query(pair.primary.url, `select pg_cancel_backend(pid) from (${waiting}) as waiting`);
    expect(await verdict).toMatchObject({ kind: "outcome_unknown", reason: "not_replicated" });
    expect(await store.read(resource)).toMatchObject({ kind: "found" }); // On the primary; not yet on the standby.
    await pair.replication.heal();
    await pair.joined();
  });

  test("G3 an administrator who ends the waiting session leaves the write unknown as well", async () => {
    store = await open(pair.primary.url);
    await put(store, uniqueName(), 1);
    await pair.replication.partition();
    const verdict = put(store, uniqueName(), 1);
    const waiting = "select pid from pg_stat_activity where wait_event = 'SyncRep'";
    await expect.poll(async () => (await query(pair.primary.url, waiting)).length, { interval: 5 }).toBe(1);
    await query(pair.primary.url, `select pg_terminate_backend(pid) from (${waiting}) as waiting`);
    expect(await verdict).toMatchObject({ kind: "outcome_unknown" });
    await pair.replication.heal();
    await pair.joined();
  });

  test("G3 a standby that is away leaves the write unknown after our own timer, which Postgres's timer does not do", async () => {
    store = await open(pair.primary.url, { writeTimeoutMs: 200, statementTimeoutMs: 50 });
    await pair.replication.partition();
    // On a busy machine Postgres's timer may end a write before it waits for the standby; it never
    // ends the wait itself, which would be answered as not replicated.
    await expect.poll(() => put(store, uniqueName(), 1)).toMatchObject({ kind: "outcome_unknown", reason: "timed_out" });
    await pair.replication.heal();
    await pair.joined();
  });

  test("G3 a retry is not told that its first try is stored before the standby has it", async () => {
    const [alone, together, patched] = [uniqueName(), uniqueName(), uniqueName()];
    const numbered = { op: "put", resource: alone, token: 1, seq: 7, value: "1" } as const;
    const transaction = { operations: [{ ...numbered, resource: together }] };
    const patch = { op: "patch", resource: patched, token: 1, seq: 7, value: '{"a":1}' } as const;
    // Answered within its time before it is committed, or it is known not to be applied.
    const patient = await open(pair.primary.url, { writeTimeoutMs: 1_000, statementTimeoutMs: 20_000 });
    await put(patient, patched, 1);
    store = await open(pair.primary.url, { writeTimeoutMs: 150, statementTimeoutMs: 20_000, statementsInFlight: 3 });
    const attempts = () => Promise.all([store.write(numbered), store.transaction(transaction), patient.write(patch)]);
    await pair.replication.partition();
    expect((await attempts()).map(({ kind }) => kind)).toEqual(["outcome_unknown", "outcome_unknown", "outcome_unknown"]);
    // Ending the wait makes the first tries visible, although the standby still lacks them.
    await expect
      .poll(
        async () => {
          await query(pair.primary.url, "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'");
          return await Promise.all([alone, together, patched].map((name) => store.read(name)));
        },
        { interval: 5 },
      )
      .toMatchObject([{ kind: "found" }, { kind: "found" }, { value: '{"a": 1}' }]);
    // With so short a timeout a busy gateway may not get to ask why a retry was refused, and then
    // answers this retry as not applied, which is true.
    const told = new Set<string>();
    await expect
      .poll(
        async () => {
          const kinds = (await attempts()).map(({ kind }) => kind);
          for (const kind of kinds) told.add(kind);
          return kinds;
        },
        { interval: 5 },
      )
      .toEqual(["outcome_unknown", "outcome_unknown", "outcome_unknown"]);
    told.delete("unavailable");
    expect([...told]).toEqual(["outcome_unknown"]);
    await pair.replication.heal();
    await pair.joined();
    // With so short a timeout a busy machine may answer "unknown" once more, which is true as well
    // and may be retried.
    await expect.poll(attempts, { interval: 5, timeout: 20_000 }).toMatchObject([
      { kind: "sequence_out_of_order", currentSeq: 7, currentRev: 1 },
      { kind: "refused", refusals: [{ refusal: { kind: "sequence_out_of_order", currentSeq: 7 } }], currentRevs: [1] },
      { kind: "sequence_out_of_order", currentSeq: 7, currentRev: 2 },
    ]);
  });

  test("refusals do not wait for the standby", async () => {
    store = await open(pair.primary.url);
    const resource = uniqueName();
    await put(store, resource, 2);
    await pair.replication.partition();
    expect(await put(store, resource, 1)).toMatchObject({ kind: "stale", currentToken: 2 });
    await pair.replication.heal();
    await pair.joined();
  });

  test("G3 the statement writes nothing in a transaction that would not wait for the standby, or not for the disk", async () => {
    await put(await open(pair.primary.url), uniqueName(), 1);
    const client = new pg.Client({ connectionString: pair.primary.url });
    await client.connect();
    const accepts = async (durability: "local" | "sync", setting: string): Promise<boolean> => {
      await client.query(`set synchronous_commit = '${setting}'`);
      const { text } = fencedWrite({ ...plainForm, rows: "any", durability });
      return (await client.query(text, statementValues([{ op: "put", resource: uniqueName(), token: 1, value: "1" }]))).rowCount === 1;
    };
    for (const setting of ["off", "local", "remote_write"]) expect([setting, await accepts("sync", setting)]).toEqual([setting, false]);
    for (const setting of ["on", "remote_apply"]) expect([setting, await accepts("sync", setting)]).toEqual([setting, true]);
    expect([await accepts("local", "off"), await accepts("local", "local")]).toEqual([false, true]);
    await client.end();
  });

  test("switched off under a running gateway, writes are refused by the statement itself", async () => {
    store = await open(pair.primary.url);
    const resource = uniqueName();
    await put(store, resource, 1);
    await store.raiseFence({ resource: uniqueName(), token: 1, by: "alice", reason: "opens the connection" });
    const [{ names } = {}] = await query(pair.primary.url, "select current_setting('synchronous_standby_names') as names");
    const admin = async (value: string) => {
      await query(pair.primary.url, `alter system set synchronous_standby_names = '${value}'`);
      await query(pair.primary.url, "select pg_reload_conf()");
      await expect
        .poll(async () => (await query(pair.primary.url, "show synchronous_standby_names"))[0]?.synchronous_standby_names, { interval: 5 })
        .toBe(value);
    };
    await admin("");
    await expect.poll(async () => (await put(store, uniqueName(), 1)).kind, { interval: 5 }).toBe("unavailable");
    expect(await put(store, resource, 2)).toMatchObject({ kind: "unavailable", reason: "not_durable", outcome: "not_applied" });
    expect(await store.transaction({ operations: [{ op: "seal", resource, token: 3 }] })).toMatchObject({
      kind: "unavailable",
      reason: "not_durable",
    });
    expect(await store.raiseFence({ resource, token: 9, by: "alice", reason: "test" })).toMatchObject({
      kind: "unavailable",
      reason: "not_durable",
    });
    const fresh = await open(pair.primary.url);
    expect(await put(fresh, resource, 2)).toMatchObject({ kind: "unavailable", reason: "not_durable" });
    expect(await checkOf(store, "durability")).toMatchObject({ status: "failed" });
    expect(await store.read(resource)).toMatchObject({ token: 1, rev: 1 });
    await admin(String(names));
    await pair.joined();
    await expect.poll(async () => (await put(store, resource, 2)).kind, { interval: 5 }).toBe("accepted");
    expect(await store.raiseFence({ resource, token: 9, by: "alice", reason: "test" })).toMatchObject({ kind: "changed" });
  });

  // The last test of this pair: afterwards there are two primaries.
  test("G1 a failover keeps the fence: 35 was acknowledged, so the promoted standby refuses 34", async () => {
    const resource = uniqueName();
    store = await open(pair.primary.url);
    expect(await put(store, resource, 35)).toMatchObject({ kind: "accepted" });
    await pair.primary.crash();
    await pair.promote();
    const after = await open(pair.standby.url, { durability: "local" });
    expect(await put(after, resource, 34)).toMatchObject({ kind: "stale", currentToken: 35 });
    expect(await after.read(resource)).toMatchObject({ value: "35" });
  });
});

test("control: with asynchronous replication the promoted standby has forgotten 35 and lets 34 in", async () => {
  const pair = await startPair("async");
  const resource = uniqueName();
  const store = await open(pair.primary.url, { durability: "local" });
  await put(store, resource, 33);
  await pair.caughtUp();
  await pair.replication.partition();
  expect(await put(store, resource, 35)).toMatchObject({ kind: "accepted" });
  await pair.primary.crash();
  await pair.promote();
  const after = await open(pair.standby.url, { durability: "local" });
  expect(await put(after, resource, 34)).toMatchObject({ kind: "accepted" });
});

test("asked for where there is no synchronous standby, nothing is written and the gateway is not ready", async () => {
  const pair = pairs[0] as PostgresPair;
  const store = await open(pair.standby.url); // Promoted above: a primary of its own, without a standby.
  expect(await put(store, uniqueName(), 1)).toMatchObject({ kind: "unavailable", reason: "not_durable", outcome: "not_applied" });
  expect(await store.ready()).toMatchObject({ ready: false });
  const local = await open(pair.standby.url, { durability: "local" });
  expect(await local.ready()).toMatchObject({ ready: true });
  expect(await checkOf(local, "durability")).toMatchObject({ status: "warning" });
});

test("commits are acknowledged only when flushed, whatever the server's configuration says", async () => {
  const pair = pairs[0] as PostgresPair;
  await query(pair.standby.url, "alter database postgres set synchronous_commit = off");
  const store = await open(pair.standby.url, { durability: "local" });
  await put(store, uniqueName(), 1);
  // The setting of a session can be seen only from within it: the statement writes it into a row
  // through a trigger.
  await query(
    pair.standby.url,
    "create table seen (setting text); create function see() returns trigger language plpgsql as 'begin insert into public.seen values (current_setting(''synchronous_commit'')); return new; end'; create trigger see before insert on palisade.resources for each row execute function see()",
  );
  await put(store, uniqueName(), 1);
  expect(await query(pair.standby.url, "select distinct setting from seen")).toEqual([{ setting: "on" }]);
  await query(
    pair.standby.url,
    "alter database postgres reset synchronous_commit; drop trigger see on palisade.resources; drop function see; drop table seen",
  );
});
