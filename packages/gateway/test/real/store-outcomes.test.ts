// Every way in which the answer to a write can be lost, on a real Postgres behind a real proxy:
// each verdict is compared with what the table then holds (G3).
import { setImmediate as nextTurn } from "node:timers/promises";
import { FaultProxy, PostgresServer } from "@palisade/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@palisade/testkit/vitest";
import pg from "pg";
import type { Verdict } from "../../src/fence/verdict.js";
import type { FencedStore, StoreEvent } from "../../src/fenced-store.js";
import { openStore, type StoreConfig } from "../../src/fenced-store.js";
import { migrate } from "../../src/store/migrate.js";
import { longTimeouts, uniqueName } from "../support/fixtures.js";
import { untilSomebodyWaits } from "../support/sql.js";

let server: PostgresServer;
let proxy: FaultProxy;
let admin: pg.Client;
const stores: FencedStore[] = [];
const holders: pg.Client[] = [];

beforeAll(async () => {
  server = await PostgresServer.start();
  await migrate(server.url);
  proxy = await FaultProxy.start({ upstream: { host: new URL(server.url).hostname, port: server.port } });
  admin = await connect();
});

afterEach(async () => {
  await proxy.heal();
  await Promise.all(stores.splice(0).map((store) => store.close({ drainMs: 0 })));
  await Promise.all(holders.splice(0).map((holder) => holder.end()));
});

afterAll(async () => {
  await admin.end();
  await proxy.stop();
  await server.stop();
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: server.url });
  client.on("error", () => {});
  await client.connect();
  return client;
}

/** Another session, in a transaction that holds the row until it ends. */
async function holderOf(resource: string): Promise<pg.Client> {
  const holder = await connect();
  holders.push(holder);
  await holder.query("begin");
  await holder.query("select from palisade.resources where resource = $1 for update", [resource]);
  return holder;
}

async function open(config: Partial<StoreConfig> = {}): Promise<FencedStore> {
  const store = await openStore({ databaseUrl: proxy.urlOf(server.url), ...longTimeouts, ...config });
  stores.push(store);
  return store;
}

/** Already connected, with one connection for writes. */
async function warmStore(config: Partial<StoreConfig> = {}): Promise<FencedStore> {
  const store = await open({ statementsInFlight: 1, ...config });
  const seal = { op: "seal", resource: uniqueName("warm"), token: 1 } as const;
  await expect.poll(async () => (await store.write(seal)).kind, { interval: 2 }).toBe("accepted"); // The short connect timeout may strike at first.
  return store;
}

const put = (store: FencedStore, resource: string, token = 1): Promise<Verdict> => store.write({ op: "put", resource, token, value: "1" });

async function isStored(resource: string): Promise<boolean> {
  const { rowCount } = await admin.query("select from palisade.resources where resource = $1", [resource]);
  return rowCount === 1;
}

describe("G3 the connection is lost after the write was sent: the outcome is unknown", () => {
  test("G3 and it was applied, when only the reply was lost", async () => {
    const store = await warmStore();
    const resource = uniqueName();
    proxy.cutAfter(0, "replies");
    expect(await put(store, resource)).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    await expect.poll(() => isStored(resource), { interval: 2 }).toBe(true);
    await proxy.heal();
    expect(await put(store, resource)).toMatchObject({ kind: "accepted", rev: 2 });
  });

  test("G3 and it was not applied, when the request was lost", async () => {
    const store = await warmStore();
    const resource = uniqueName();
    proxy.cutAfter(0, "requests");
    expect(await put(store, resource)).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    await proxy.heal();
    expect(await isStored(resource)).toBe(false);
    expect(await put(store, resource)).toMatchObject({ kind: "accepted", rev: 1 });
  });

  test("G3 and none of its neighbours in the batch is sent again", async () => {
    const store = await warmStore();
    const resources = Array.from({ length: 20 }, () => uniqueName());
    proxy.cutAfter(0, "replies");
    const verdicts = await Promise.all(resources.map((resource) => put(store, resource)));
    expect(new Set(verdicts.map(({ kind }) => kind))).toEqual(new Set(["outcome_unknown"]));
    await proxy.heal();
    await expect.poll(() => isStored(resources[0] ?? ""), { interval: 2 }).toBe(true);
    const { rows } = await admin.query("select distinct rev from palisade.resources where resource = any($1)", [resources]);
    expect(rows).toEqual([{ rev: "1" }]);
  });

  test("G3 and so it is for a transaction", async () => {
    const store = await warmStore();
    const resource = uniqueName();
    await store.transaction({ operations: [{ op: "put", resource, token: 1, value: "1" }] });
    proxy.cutAfter(0, "replies");
    expect(await store.transaction({ operations: [{ op: "put", resource, token: 1, value: "2" }] })).toMatchObject({
      kind: "outcome_unknown",
    });
    await expect
      .poll(async () => (await admin.query("select rev from palisade.resources where resource = $1", [resource])).rows, { interval: 2 })
      .toEqual([{ rev: "2" }]);
  });

  for (const lost of ["replies", "requests"] as const)
    test(`G3 and with its number it can be sent again, alone or in a transaction: it is applied once (lost: ${lost})`, async () => {
      const store = await warmStore();
      await store.transaction({ operations: [{ op: "seal", resource: uniqueName("warm"), token: 1 }] });
      const [alone, together, beside] = [uniqueName(), uniqueName(), uniqueName()];
      const numbered = (resource: string) => ({ op: "put", resource, token: 5, seq: 1, value: "1" }) as const;
      const operations = [numbered(together), { op: "put", resource: beside, token: 5, value: "1" } as const];
      for (const send of [() => store.write(numbered(alone)), () => store.transaction({ operations })]) {
        proxy.cutAfter(0, lost);
        expect(await send()).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
        await proxy.heal();
      }
      if (lost === "replies") for (const name of [alone, together]) await expect.poll(() => isStored(name), { interval: 2 }).toBe(true);
      const again = [await store.write(numbered(alone)), await store.transaction({ operations })];
      const found = { kind: "sequence_out_of_order", currentSeq: 1, currentRev: 1 };
      if (lost === "replies")
        expect(again).toMatchObject([found, { kind: "refused", refusals: [{ index: 0, refusal: found }], currentRevs: [1, 1] }]);
      else expect(again).toMatchObject([{ kind: "accepted" }, { kind: "committed" }]);
      for (const name of [alone, together, beside]) expect(await store.read(name)).toMatchObject({ rev: 1 });
    });

  test("G3 or certain, where a patch had only read: wherever its transaction is cut, no answer says more than is known", async () => {
    const store = await warmStore();
    const told = new Set<string>();
    for (let bytes = 0; !told.has("accepted"); bytes += 12) {
      const resource = uniqueName();
      await expect
        .poll(async () => (await store.write({ op: "put", resource, token: 1, value: "{}" })).kind, { interval: 2 })
        .toBe("accepted");
      const { rev } = (await store.read(resource)) as { readonly rev: number };
      proxy.cutAfter(bytes, "replies");
      const { kind } = await store.write({ op: "patch", resource, token: 1, value: '{"a":1}' });
      told.add(kind);
      await proxy.heal();
      // By a later statement of the same row, so that what was under way is over.
      const later = await store.write({ op: "put", resource, token: 1, value: "1" });
      if (kind === "unavailable") expect([bytes, later]).toMatchObject([bytes, { kind: "accepted", rev: rev + 1 }]);
    }
    expect([...told].sort()).toEqual(["accepted", "outcome_unknown", "unavailable"]);
  });

  test("G3 when an administrator ends the session while the write waits for a row", async () => {
    const store = await warmStore();
    const resource = uniqueName();
    await put(store, resource);
    const holder = await holderOf(resource);
    const verdict = put(store, resource, 2);
    await untilSomebodyWaits(admin);
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'");
    expect(await verdict).toMatchObject({ kind: "outcome_unknown", reason: "connection_lost" });
    await holder.end();
    expect(await put(store, resource, 2)).toMatchObject({ kind: "accepted", rev: 2 });
  });
});

describe("G3 no answer comes", () => {
  test("G3 within the time for a write: unknown, and the connection is not used again", async () => {
    const store = await warmStore({ writeTimeoutMs: 150, statementTimeoutMs: 20_000 });
    const resource = uniqueName();
    proxy.holdReplies();
    const sentAt = performance.now();
    expect(await put(store, resource)).toMatchObject({ kind: "outcome_unknown", reason: "timed_out" });
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(145);
    await expect.poll(() => isStored(resource), { interval: 2 }).toBe(true);
    proxy.deliver(); // The late answer reaches no statement.
    await proxy.until(() => proxy.connections === 0);
    await expect.poll(async () => (await put(store, resource)).kind, { interval: 2 }).toBe("accepted"); // The short timeout may strike again.
    await proxy.until(() => proxy.connections === 1);
  });

  test("G3 because the whole server stands still: unknown for what was sent, not applied for what could not connect", async () => {
    const store = await warmStore({ writeTimeoutMs: 150, connectTimeoutMs: 100 });
    await server.pause();
    const [sent, late] = [uniqueName(), uniqueName()];
    expect(await put(store, sent)).toMatchObject({ kind: "outcome_unknown", reason: "timed_out" });
    expect(await put(store, late)).toMatchObject({ kind: "unavailable", reason: "unreachable", outcome: "not_applied" });
    await server.resume();
    expect(await isStored(late)).toBe(false);
    expect(await put(await open(), late)).toMatchObject({ kind: "accepted", rev: 1 });
    await expect.poll(async () => (await put(store, late)).kind, { interval: 2 }).toBe("accepted");
  });

  test("once statements time out, only one at a time is started until Postgres answers again", async () => {
    const store = await warmStore({ writeTimeoutMs: 100, connectTimeoutMs: 500, statementsInFlight: 4, maxBatchRows: 1 });
    const startedOf = async (verdicts: readonly Promise<Verdict>[]): Promise<number> => {
      await nextTurn();
      const { statementsInFlight } = store.stats();
      await proxy.heal();
      await Promise.all(verdicts);
      return statementsInFlight;
    };
    const six = () => Array.from({ length: 6 }, () => put(store, uniqueName()));
    proxy.holdReplies();
    expect(await put(store, uniqueName())).toMatchObject({ kind: "outcome_unknown", reason: "timed_out" });
    expect(await startedOf(six())).toBe(1);
    await expect.poll(async () => (await put(store, uniqueName())).kind, { interval: 2 }).toBe("accepted");
    expect(await startedOf(six())).toBe(4);
  });
});

describe("G3 Postgres says no: certainly not applied", () => {
  test("G3 when its own timer ends the statement first", async () => {
    const store = await warmStore({ statementTimeoutMs: 60 });
    const resource = uniqueName();
    await admin.query("select palisade.guard($1, 1)", [resource]);
    await holderOf(resource);
    expect(await put(store, resource, 2)).toMatchObject({
      kind: "unavailable",
      reason: "refused",
      outcome: "not_applied",
      cause: { code: "57014" },
    });
  });

  test("G3 when it has become read-only, as after a failover; and the next connection is a new one", async () => {
    const store = await warmStore();
    const resource = uniqueName();
    try {
      await admin.query("alter system set default_transaction_read_only = on");
      await admin.query("select pg_reload_conf()");
      // The running session notices a moment later; from then on every answer is the same, on old
      // connections (25006) and on new ones.
      await expect.poll(async () => (await put(store, uniqueName())).kind, { interval: 2 }).toBe("unavailable");
      for (let attempt = 0; attempt < 2; attempt += 1)
        expect(await put(store, resource)).toMatchObject({ kind: "unavailable", reason: "read_only", outcome: "not_applied" });
      expect((await store.ready()).checks).toContainEqual(expect.objectContaining({ name: "writable", status: "failed" }));
    } finally {
      await admin.query("set default_transaction_read_only = off");
      await admin.query("alter system reset default_transaction_read_only");
      await admin.query("select pg_reload_conf()");
    }
    await expect.poll(async () => (await put(store, resource)).kind, { interval: 2 }).toBe("accepted");
    expect(await store.read(resource)).toMatchObject({ rev: 1 });
  });

  test("G3 when it has no connection to give", async () => {
    await admin.query("create role crowded login connection limit 0");
    const url = new URL(proxy.urlOf(server.url));
    url.username = "crowded";
    const store = await open({ databaseUrl: url.href });
    expect(await put(store, uniqueName())).toMatchObject({ kind: "unavailable", reason: "refused", cause: { code: "53300" } });
    expect(await store.read("r")).toMatchObject({ kind: "unavailable", reason: "refused" });
    expect(await store.ready()).toMatchObject({ ready: false });
  });

  test("G3 when Postgres does not listen: the store opens all the same, and works once Postgres does", async () => {
    await proxy.refuse();
    const store = await open();
    expect(await put(store, uniqueName())).toMatchObject({ kind: "unavailable", reason: "unreachable", outcome: "not_applied" });
    expect(await store.transaction({ operations: [{ op: "seal", resource: uniqueName(), token: 1 }] })).toMatchObject({
      kind: "unavailable",
      reason: "unreachable",
    });
    expect(await store.read("r")).toMatchObject({ kind: "unavailable", reason: "unreachable" });
    expect(await store.list({ limit: 1 })).toMatchObject({ kind: "unavailable" });
    expect(await store.raiseFence({ resource: "r", token: 1, by: "me", reason: "why" })).toMatchObject({ kind: "unavailable" });
    expect(await store.ready()).toMatchObject({ ready: false, checks: [{ name: "database", status: "failed" }] });
    await proxy.heal();
    expect(await put(store, uniqueName())).toMatchObject({ kind: "accepted" });
  });

  test("G3 when the store closes while it is still connecting", async () => {
    await proxy.partition();
    const store = await open();
    const verdict = put(store, uniqueName());
    await proxy.until(() => proxy.connections === 1);
    await store.close({ drainMs: 10 });
    expect(await verdict).toMatchObject({ kind: "unavailable", reason: "unreachable", outcome: "not_applied" });
  });

  test("G3 when the schema is missing", async () => {
    const database = await server.createDatabase();
    const store = await open({ databaseUrl: database.url });
    expect(await put(store, uniqueName())).toMatchObject({
      kind: "unavailable",
      reason: "refused",
      outcome: "not_applied",
      cause: { code: "42P01" },
    });
    expect((await store.ready()).checks).toContainEqual(expect.objectContaining({ name: "schema", status: "failed" }));
    await store.close();
    await database.drop();
  });
});

test("a prepared statement that is gone is prepared again, and the write is applied once", async () => {
  const store = await warmStore();
  const resource = uniqueName();
  await put(store, resource);
  // What a pooler's DISCARD ALL, or a migration under way, does to the session: here the
  // statement's result type changes.
  await admin.query('alter table palisade.resources alter column resource type varchar collate "C"');
  try {
    expect(await put(store, resource)).toMatchObject({ kind: "accepted", rev: 2 });
  } finally {
    await admin.query('alter table palisade.resources alter column resource type text collate "C"');
  }
  expect(await put(store, resource)).toMatchObject({ kind: "accepted", rev: 3 });
});

test("an idle connection that Postgres closes is reported and replaced", async () => {
  const events: StoreEvent[] = [];
  const store = await warmStore({ observe: (event) => events.push(event) });
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'palisade-gateway'");
  await expect.poll(() => events.some(({ kind }) => kind === "connection_error"), { interval: 2 }).toBe(true);
  expect(await put(store, uniqueName())).toMatchObject({ kind: "accepted" });
});
