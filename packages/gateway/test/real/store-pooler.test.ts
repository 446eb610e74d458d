// Behind a real pgbouncer. In transaction mode every statement may run on another connection to
// Postgres, so what was set on one says nothing of the next; the statement has to bring what it
// needs. In session mode the gateway keeps its connection.
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { migrate } from "@palisade/guard/schema";
import { Pgbouncer, type PgbouncerOptions } from "@palisade/testkit";
import { test as base, describe, expect, uniqueName } from "../support/fixtures.js";
import { holderOf, put } from "../support/sql.js";

type StartPooler = (mode: PgbouncerOptions["mode"], settings?: PgbouncerOptions["settings"]) => Promise<string>;

const test = base
  .extend("cleanup", ({ task: _test }, { onCleanup }): ((undo: () => Promise<unknown>) => void) => {
    const undone: (() => Promise<unknown>)[] = [];
    onCleanup(async () => {
      for (const undo of undone.reverse()) await undo();
    });
    return (undo) => undone.push(undo);
  })
  /** The URL of the file's database behind a pooler of its own. */
  .extend(
    "pooled",
    ({ database, cleanup }): StartPooler =>
      async (mode, settings = {}) => {
        const pooler = await Pgbouncer.start({ databaseUrl: database.url, mode, settings });
        cleanup(() => pooler.stop());
        return pooler.urlOf(database.url);
      },
  )
  /** The URL of the file's database behind something that does not tell which process serves it. */
  .extend("untold", ({ database, cleanup }) => async (): Promise<string> => {
    const { hostname, port } = new URL(database.url);
    const server = createServer((client) => {
      const upstream = connect(Number(port), hostname);
      client.on("close", () => upstream.destroy()).on("error", () => {});
      upstream.on("close", () => client.destroy()).on("error", () => {});
      client.pipe(upstream);
      let bytes = Buffer.alloc(0);
      upstream.on("data", (chunk) => {
        bytes = Buffer.concat([bytes, chunk]);
        for (let end = endOf(bytes); end <= bytes.length; end = endOf(bytes)) {
          if (bytes[0] !== BACKEND_KEY_DATA) client.write(bytes.subarray(0, end));
          bytes = bytes.subarray(end);
        }
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    cleanup(async () => server.close());
    return Object.assign(new URL(database.url), { hostname: "127.0.0.1", port: (server.address() as AddressInfo).port }).href;
  });

const [BACKEND_KEY_DATA] = Buffer.from("K");
/** Of the first message: a letter, and the length of all but the letter. */
const endOf = (bytes: Buffer): number => (bytes.length < 5 ? Number.POSITIVE_INFINITY : 1 + bytes.readInt32BE(1));

/** A build of Postgres without LLVM has the setting as well; there nothing else shows it. */
const NOTE_JIT = `
  create table jit_seen (jit text);
  create function note_jit() returns trigger language plpgsql as
    'begin insert into public.jit_seen values (current_setting(''jit'')); return new; end';
  create trigger note_jit before insert or update on palisade.resources for each row execute function note_jit()`;

for (const way of ["no pooler", "a server that tells no process", "session", "transaction"] as const)
  test(`G6 no statement of a write is compiled before it runs: ${way}`, async ({
    database,
    pooled,
    untold,
    openStore,
    connect,
    cleanup,
  }) => {
    const url = way === "no pooler" ? database.url : way.startsWith("a server") ? await untold() : await pooled(way as "session");
    const [store, owner] = [await openStore({ databaseUrl: url }), await connect()];
    await owner.query(NOTE_JIT);
    cleanup(() => owner.query("drop function note_jit cascade; drop table jit_seen"));
    const resource = uniqueName();
    expect(await store.write(put(resource, 34, "1"))).toMatchObject({ kind: "accepted" });
    expect(await store.transaction({ operations: [put(resource, 35, "2")] })).toMatchObject({ kind: "committed" });
    expect(await store.write({ op: "patch", resource, token: 35, value: "3" })).toMatchObject({ kind: "accepted" });
    expect((await owner.query("select distinct jit from jit_seen")).rows).toEqual([{ jit: "off" }]);
  });

describe.each(["session", "transaction"] as const)("behind pgbouncer in %s mode", (mode) => {
  test("G1 G3 writes, transactions, reads and lists do what they do without it", async ({ pooled, openStore, connect }) => {
    const store = await openStore({ databaseUrl: await pooled(mode), history: "on", batchLockWaitMs: 200 });
    const [first, second] = [uniqueName(), uniqueName()];
    const numbered = { ...put(first, 35, '{"n":1}'), seq: 1 };
    expect(await store.ready()).toMatchObject({ ready: true });
    expect(await store.write(numbered)).toMatchObject({ kind: "accepted" });
    expect(await store.write(numbered)).toMatchObject({ kind: "sequence_out_of_order", currentSeq: 1, currentRev: 1 });
    expect(await store.write(put(first, 34, "2"))).toMatchObject({ kind: "stale", currentToken: 35 });
    expect(await store.transaction({ operations: [put(first, 36, "3"), put(second, 36, "3")] })).toMatchObject({ kind: "committed" });
    expect(await store.read(first)).toMatchObject({ kind: "found", value: "3", token: 36 });
    const patch = { op: "patch", resource: first, token: 36, value: '{"n":2}' } as const;
    expect(await store.write({ ...patch, seq: 1 })).toMatchObject({ kind: "accepted", value: '{"n": 2}' });
    expect(await store.transaction({ operations: [patch, put(second, 36, "4")] })).toMatchObject({ kind: "committed" });
    expect(await store.list({ prefix: second, limit: 9 })).toMatchObject({ items: [{ resource: second }] });
    expect(await store.history({ resource: first, limit: 9 })).toMatchObject({
      entries: [{ op: "patch" }, { op: "patch" }, { token: 36, op: "put" }, { token: 35 }],
    });
    const holder = await holderOf(connect, second);
    expect(await store.write(put(second, 37, "1"))).toMatchObject({ kind: "contention", code: "55P03" });
    await holder.query("rollback");
    expect(await store.lowerFence({ resource: first, token: 7, by: "alice", reason: "test" })).toMatchObject({ kind: "changed" });
  });

  test("G3 two gateways with different settings behind one pool run each its own statement", async ({ pooled, openStore, connect }) => {
    const databaseUrl = await pooled(mode, { default_pool_size: "2", server_reset_query: "" });
    const stores = [await openStore({ databaseUrl, history: "on" }), await openStore({ databaseUrl, history: "off" })];
    const name = uniqueName();
    const writes = Array.from({ length: 60 }, (_, n) => stores[n % 2]?.write(put(`${name}/${n}`, 1, "1")));
    expect(new Set((await Promise.all(writes)).map((verdict) => verdict?.kind))).toEqual(new Set(["accepted"]));
    const text = "select resource from palisade.history where starts_with(resource, $1)";
    expect((await (await connect()).query(text, [`${name}/`])).rowCount).toBe(30);
  });

  test("a pooled session is left as it was found", async ({ pooled, openStore, connect }) => {
    const databaseUrl = await pooled(mode, { default_pool_size: "1", server_reset_query: "" });
    const store = await openStore({ databaseUrl, statementsInFlight: 1, poolSize: 1 });
    if (mode === "transaction") {
      await store.write(put(uniqueName(), 1, "1"));
      await store.read(uniqueName());
    }
    await store.close();
    const other = await connect(databaseUrl);
    const { rows } = await other.query("select current_setting('lock_timeout') as wait, current_setting('enable_seqscan') as scan");
    expect(rows).toEqual([{ wait: "0", scan: "on" }]);
    expect((await other.query("select from pg_prepared_statements")).rowCount).toBe(0);
  });
});

test("a pooler in statement mode is refused, and the reason is named", async ({ pooled, openStore }) => {
  const store = await openStore({ databaseUrl: await pooled("statement") });
  const cause = { message: expect.stringContaining("statement") };
  expect(await store.write(put(uniqueName(), 1, "1"))).toMatchObject({ kind: "unavailable", cause });
  expect(await store.ready()).toMatchObject({ ready: false });
});

test("several gateways may bring an empty database up to date at once, also behind a pooler", async ({ postgres, cleanup }) => {
  const database = await postgres.createDatabase();
  cleanup(() => database.drop());
  const pooler = await Pgbouncer.start({ databaseUrl: database.url, mode: "transaction" });
  cleanup(() => pooler.stop());
  const urls = [database.url, pooler.urlOf(database.url)].flatMap((url) => [url, url, url]);
  const reports = await Promise.all(urls.map((url) => migrate(url)));
  expect(reports.filter(({ applied }) => applied.length > 0)).toHaveLength(1);
  expect(new Set(reports.map(({ applied, alreadyThere }) => applied.length + alreadyThere)).size).toBe(1);
});
