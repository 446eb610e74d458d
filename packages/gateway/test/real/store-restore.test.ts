// A restored backup must not forget fences (G7): a real cluster that is restored in every way that there
// is, under gateways with open connections, real nodes of the lock, and the program that recovers.
import { withFencedTransaction } from "@palisade/guard";
import { migrate } from "@palisade/guard/schema";
import { createLocker, type Locker } from "@palisade/lock";
import { connectTo, Pgbouncer, PostgresPair, PostgresServer, queryAt, type RedisFleet } from "@palisade/testkit";
import type pg from "pg";
import type { FencedStore } from "../../src/fenced-store.js";
import { openStore, type StoreConfig } from "../../src/fenced-store.js";
import { recover } from "../../src/recover.js";
import { markOf } from "../../src/store/restore-check.js";
import { test as base, expect, longTimeouts, runProgram, vi } from "../support/fixtures.js";
import { put } from "../support/sql.js";

interface Site {
  readonly server: PostgresServer;
  readonly fleet: RedisFleet;
  readonly locker: Locker;
  open(config?: Partial<StoreConfig>): Promise<FencedStore>;
  /** As a process of its own, which costs half a second. */
  recover(...args: readonly string[]): ReturnType<typeof runProgram>;
  /** What that process does. */
  recovered(lost?: "unknown" | "nothing"): ReturnType<typeof recover>;
  /** Of the database that gateways use. */
  readonly url: string;
  query(text: string): Promise<readonly Record<string, unknown>[]>;
  /** A transaction on a fenced table of the user's own, past every gateway: row 1 is orders/1. */
  writeOwn(token: number): Promise<unknown>;
  beat(): Promise<number>;
  /** Until the nodes remember a beat above this one; resolves with it. */
  beatAbove(beat: number): Promise<number>;
  aSecondLater(): void;
}

const ORDERS = `create table orders (id integer primary key, token bigint); insert into orders values (1, 0);
  select palisade.fence_table('orders', 'orders/', 'id')`;

async function writeOwn(connectionString: string, token: number): Promise<void> {
  await using client = await connectTo(connectionString);
  const write = (tx: pg.Client) => tx.query("update orders set token = $1", [token]);
  await withFencedTransaction(client, { resource: "orders/1", token }, write);
}

const test = base
  /** What gateways do once a second, beats and looks, they do when this is called. */
  .extend("aSecondLater", ({ task: _test }, { onCleanup }): (() => void) => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onCleanup(() => void vi.useRealTimers());
    return () => void (vi.isFakeTimers() && vi.advanceTimersByTime(1_000));
  })
  .extend("site", async ({ fleet: start, aSecondLater }, { onCleanup }): Promise<Site> => {
    const fleet = await start({ nodes: 3 });
    const server = await PostgresServer.start({ provider: "local" });
    const locker = createLocker({ nodes: fleet.urls, nodeTimeoutMs: 5_000, maxTtlMs: 60_000 });
    const stores: FencedStore[] = [];
    onCleanup(async () => {
      await Promise.all(stores.map((store) => store.close({ drainMs: 0 })));
      await locker.close();
      await server.stop();
    });
    await queryAt(server.url, "create database app");
    const url = server.url.replace(/postgres$/, "app");
    await migrate(url);
    const query = (text: string) => queryAt(url, text);
    await query(ORDERS);
    const [{ id } = {}] = await query("select id from palisade.lineage");
    const beatAbove = async (beat: number): Promise<number> => {
      let seen = 0;
      const read = async () => {
        aSecondLater();
        seen = await locker.fleet.mark(markOf(String(id)), 0);
        return seen;
      };
      await expect.poll(read, { interval: 20, timeout: 30_000 }).toBeGreaterThan(beat);
      return seen;
    };
    return {
      server,
      fleet,
      locker,
      url,
      query,
      writeOwn: (token) => writeOwn(url, token),
      beat: async () => Number((await query("select beat from palisade.lineage"))[0]?.beat),
      beatAbove,
      aSecondLater,
      recover: (...args) => runProgram(["recover", ...args], { DATABASE_URL: url, PALISADE_REDIS_URLS: fleet.urls.join(",") }),
      recovered: (lost = "unknown") => recover({ databaseUrl: url, lock: locker.fleet, by: "test", reason: "test", lost }),
      async open(config = {}) {
        const verify = async (resource: string, token: number) => ((await locker.fleet.issued(resource, token)) ? "issued" : "unissued");
        const store = await openStore({ databaseUrl: url, ...longTimeouts, marks: locker.fleet, verify, ...config });
        stores.push(store);
        return store;
      },
    };
  });

const refusedRead = { kind: "unavailable", reason: "not_recovered" };
const refused = { ...refusedRead, outcome: "not_applied" };

/** Keeps a backup; answers how to restore it. */
type Way = (site: Site) => Promise<() => Promise<unknown>>;

const TABLES = ["resources", "history", "fence_changes", "lineage", "recoveries"];

/** What a dump has of these tables; the statements that load it, as those of pg_restore do. */
async function dumped({ query }: Site): Promise<string> {
  const loads = TABLES.map(async (table) => {
    const [{ rows } = {}] = await query(`select coalesce(json_agg(t), '[]')::text as rows from palisade.${table} as t`);
    return `insert into palisade.${table} overriding system value
      select * from json_populate_recordset(null::palisade.${table}, $dump$${String(rows)}$dump$);`;
  });
  return (await Promise.all(loads)).join("\n");
}

const EMPTY = `truncate ${TABLES.map((table) => `palisade.${table}`).join(", ")};`;

/** What needs a database without sessions. */
async function alone({ server }: Site, text: string): Promise<void> {
  const done = async () => {
    await queryAt(server.url, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'app'");
    return await queryAt(server.url, text).then(
      () => true,
      (error: Error) => error.message,
    );
  };
  await expect.poll(done, { timeout: 30_000, interval: 20 }).toBe(true);
}

/** The database of this name takes the place of the one that gateways use. */
async function putInPlace(site: Site, name: string): Promise<void> {
  await alone(site, "alter database app rename to lost");
  await queryAt(site.server.url, `alter database ${name} rename to app`);
}

const putFilesBack: Way = async ({ server }) => {
  await server.backUp();
  return () => server.restoreBackup();
};
const ways: Readonly<Record<string, Way>> = {
  "pg_restore --clean into the running database": async (site) => {
    const load = await dumped(site);
    return async () => {
      await site.query("drop schema palisade cascade");
      await migrate(site.url);
      await site.query(EMPTY + load);
    };
  },
  "pg_restore --data-only into its emptied tables": async (site) => {
    const load = await dumped(site);
    return () => site.query(EMPTY + load);
  },
  "pg_restore into another database, which takes its name": async (site) => {
    const load = await dumped(site);
    const other = site.server.url.replace(/postgres$/, "other");
    return async () => {
      await queryAt(site.server.url, "create database other");
      await migrate(other);
      await queryAt(other, `${EMPTY}${load}; ${ORDERS}`);
      await putInPlace(site, "other");
    };
  },
  "a copy of the database, which takes its name": async (site) => {
    await alone(site, "create database copy template app");
    return () => putInPlace(site, "copy");
  },
};

/** Backup, then 35 writes over 34, and a resource that the backup does not know has two holders. */
async function writeAfterBackup(site: Site, backUp: Way = putFilesBack) {
  const { locker, open, beatAbove } = site;
  const store = await open();
  const older = await locker.acquire("orders/1");
  expect(await store.write(put("orders/1", older.token, '"before"'))).toMatchObject({ kind: "accepted" });
  await older.release();
  expect(await store.ready()).toMatchObject({ ready: true }); // And own tables wait for a gateway's word from now on.
  await beatAbove(1);
  const restore = await backUp(site);
  const beat = await site.beat();
  const [newer, first] = [await locker.acquire("orders/1"), await locker.acquire("orders/2")];
  await first.release();
  const second = await locker.acquire("orders/2");
  const after = await open();
  expect(await after.write(put("orders/1", newer.token, '"after"'))).toMatchObject({ kind: "accepted" });
  expect(await after.write(put("orders/2", second.token, '"after"'))).toMatchObject({ kind: "accepted" });
  await beatAbove(beat);
  // All connections of both are open, and one of them has not heard of the last beats.
  for (const gateway of [store, after]) {
    expect(await gateway.write(put("orders/1", older.token, '"late"'))).toMatchObject({ kind: "stale" });
    expect(await gateway.transaction({ operations: [put("orders/1", older.token, '"late"')] })).toMatchObject({ kind: "refused" });
    expect(await gateway.read("orders/1")).toMatchObject({ value: '"after"' });
  }
  return { store, after, older, newer, first, second, restore };
}

/** Four gateways, one of them behind a pooler and one that is new: what they refuse until the recovery. */
async function restored(site: Site, way: Way, recovery: () => Promise<unknown>) {
  await using pooler = await Pgbouncer.start({ databaseUrl: site.url, mode: "transaction" });
  const pooled = await site.open({ databaseUrl: pooler.urlOf(site.url) });
  const { store, after, older, newer, first, second, restore } = await writeAfterBackup(site, way);
  // A pooler takes its time to find a server that was started anew.
  const inTheEnd = (ask: () => Promise<unknown>) => expect.poll(ask, { timeout: 30_000, interval: 20 });
  await inTheEnd(() => pooled.write(put("orders/2", second.token, '"after"'))).toMatchObject({ kind: "accepted" });
  await restore();
  const gateways = [after, store, pooled, await site.open()] as const;
  for (let seconds = 0; seconds < 3; seconds += 1) {
    // A gateway that asks the nodes does not confirm own tables either, nor names that are newer than the backup.
    await expect(site.writeOwn(older.token)).rejects.toMatchObject({ name: "GuardError", code: "not_recovered" });
    await expect(site.query(`select palisade.guard('orders/2', ${first.token})`)).rejects.toMatchObject({ code: "PLS10" });
    for (const gateway of gateways) {
      const late = put("orders/1", older.token, '"late"');
      // Each has connections of its own, and the first answer may be that one was cut.
      expect((await gateway.read("orders/1")).kind).toBe("unavailable");
      expect((await gateway.transaction({ operations: [late] })).kind).toMatch(/unavailable|outcome_unknown/);
      expect((await gateway.write(late)).kind).toMatch(/unavailable|outcome_unknown/);
      await inTheEnd(() => gateway.write(late)).toMatchObject(refused);
      await inTheEnd(() => gateway.transaction({ operations: [late] })).toMatchObject(refused);
      const change = { resource: "orders/1", token: newer.token, by: "me", reason: "why" };
      await inTheEnd(() => gateway.raiseFence(change)).toMatchObject(refused);
      await inTheEnd(() => gateway.read("orders/1")).toMatchObject(refusedRead);
      await inTheEnd(() => gateway.list({ limit: 9 })).toMatchObject(refusedRead);
      expect(await gateway.ready()).toMatchObject({ ready: false });
    }
    site.aSecondLater();
  }
  await recovery();
  for (const gateway of gateways) {
    expect(await gateway.write(put("orders/1", older.token, '"late"'))).toMatchObject({ kind: "stale", currentToken: newer.token });
    expect(await gateway.write(put("orders/1", newer.token, '"again"'))).toMatchObject({ kind: "accepted" });
    expect(await gateway.read("orders/1")).toMatchObject({ value: '"again"' });
  }
  await expect(site.writeOwn(older.token)).rejects.toMatchObject({ code: "fencing_token_stale", currentToken: newer.token });
  await site.writeOwn(newer.token);
  await pooled.close();
  return { gateways: [after, store] as const, newer, first, second };
}

test.for(Object.keys(ways))("G7 %s: open connections refuse what they refused before, until the recovery", async (way, { site }) => {
  await restored(site, ways[way] as Way, () => site.recovered());
});

test("G7 its files put back: until the program that recovers raises every fence, also of names that the backup does not know", async ({
  site,
}) => {
  const { gateways, newer, first, second } = await restored(site, putFilesBack, async () => {
    const recovered = await site.recover("--reason", "the disk was lost");
    expect(recovered).toMatchObject({ code: 0 });
    expect(JSON.parse(recovered.out)).toMatchObject({ raised: 2, resources: 2 });
  });
  for (const gateway of gateways) {
    expect(await gateway.ready()).toMatchObject({ ready: true });
    expect(await gateway.write(put("orders/2", first.token, '"late"'))).toMatchObject({ kind: "stale", currentToken: second.token });
    expect(await gateway.transaction({ operations: [put("orders/2", first.token, '"late"')] })).toMatchObject({ kind: "refused" });
  }
  // Who holds the lease now, and the next one, can write.
  expect(await gateways[0].write(put("orders/1", newer.token, '"once more"'))).toMatchObject({ kind: "accepted" });
  await second.release();
  expect(await gateways[0].write(put("orders/2", (await site.locker.acquire("orders/2")).token, "1"))).toMatchObject({ kind: "accepted" });
  expect(await site.query("select raised::integer, reason from palisade.recoveries")).toEqual([{ raised: 2, reason: "the disk was lost" }]);
});

test("G7 a freshly migrated database in the place of the one that was written is refused until the recovery", async ({ site }) => {
  const store = await site.open();
  const [older, newer] = [await site.locker.acquire("orders/2"), await site.locker.acquire("orders/1")];
  expect(await store.write(put("orders/1", newer.token, '"before"'))).toMatchObject({ kind: "accepted" });
  expect(await store.ready()).toMatchObject({ ready: true });
  await site.query("drop schema palisade cascade");
  await migrate(site.url);
  for (let seconds = 0; seconds < 3; seconds += 1) {
    expect(await store.ready()).toMatchObject({ ready: false });
    expect(await store.write(put("orders/2", older.token, '"fenceless"'))).toMatchObject(refused);
    expect(await store.read("orders/1")).toMatchObject(refusedRead);
    site.aSecondLater();
  }
  await site.recovered();
  expect(await store.ready()).toMatchObject({ ready: true });
  // Its fences are those of the lock again.
  expect(await store.write(put("orders/1", newer.token - 1, '"late"'))).toMatchObject({ kind: "stale", currentToken: newer.token });
  expect(await store.write(put("orders/1", newer.token, '"again"'))).toMatchObject({ kind: "accepted" });
});

test("G7 a dump that has every beat may lack what came after the last one, and asks for a recovery as well", async ({ site }) => {
  const store = await site.open({ verify: undefined });
  expect(await store.write(put("r", 34, "1"))).toMatchObject({ kind: "accepted" });
  await site.beatAbove(1);
  const load = await dumped(site);
  expect(await store.write(put("r", 35, "1"))).toMatchObject({ kind: "accepted" });
  await site.query(EMPTY + load);
  expect(await store.read("r")).toMatchObject(refusedRead);
  expect(await store.write(put("r", 34, "2"))).toMatchObject(refused);
});

test("G7 a gateway that writes while the nodes are down refuses a restored database and counts no beats that would hide it", async ({
  site,
}) => {
  const { config, answer, fallSilent } = silentAtFirst(site);
  answer();
  const store = await site.open({ ...config, verify: undefined });
  expect(await store.write(put("r", 34, "1"))).toMatchObject({ kind: "accepted" });
  expect(await store.ready()).toMatchObject({ ready: true });
  const restore = await putFilesBack(site);
  const restored = await site.beat();
  await expect.poll(async () => (await store.write(put("r", 35, "1"))).kind).toBe("accepted");
  await site.beatAbove(restored);
  fallSilent();
  await restore();
  const fresh = await site.open({ ...config, verify: undefined });
  // What the operator chose is about writes through the gateway: own tables wait for the nodes' word.
  await expect(site.writeOwn(34)).rejects.toMatchObject({ code: "not_recovered" });
  for (let seconds = 0; seconds < 9; seconds += 1) {
    expect((await store.write(put("r", 34, "2"))).kind).toMatch(/unavailable|outcome_unknown/);
    expect(await fresh.write(put("other", 1, "2"))).toMatchObject({ kind: "accepted" });
    site.aSecondLater();
    await fresh.ready(); // As long as a look takes.
  }
  expect(await store.write(put("r", 34, "2"))).toMatchObject(refused);
  expect(await site.beat()).toBe(restored);
  answer();
  await expect.poll(() => fresh.ready()).toMatchObject({ ready: false });
  for (const gateway of [store, fresh]) expect(await gateway.write(put("r", 34, "2"))).toMatchObject(refused);
  await site.recovered();
  expect(await store.write(put("r", 35, "3"))).toMatchObject({ kind: "stale" }); // No lease had it.
});

test("G7 what one gateway found holds for those that the nodes have told less; control: without the marks the older token is accepted over the newer one's update, also in own tables", async ({
  site,
}) => {
  const { older, restore } = await writeAfterBackup(site);
  await restore();
  const late = put("orders/1", older.token, '"late"');
  const knowsLess = await site.open({ marks: { mark: async (_name, atLeast) => atLeast }, verify: undefined });
  expect(await knowsLess.write(put("other", 1, "1"))).toMatchObject({ kind: "accepted" });
  expect(await (await site.open()).ready()).toMatchObject({ ready: false });
  expect(await knowsLess.read("orders/1")).toMatchObject(refusedRead);
  expect(await knowsLess.write(late)).toMatchObject(refused);
  const forgetful = await site.open({ marks: undefined });
  expect(await forgetful.write(late)).toMatchObject({ kind: "accepted" });
  await expect(site.writeOwn(older.token)).rejects.toMatchObject({ code: "not_recovered" });
  await site.query("update palisade.lineage set confirmed_start = null");
  await site.writeOwn(older.token);
});

test("G7 a resource that neither the backup nor a counter of the lock knows stays closed to its old tokens", async ({ site }) => {
  const { first, second } = await writeAfterBackup(site);
  await second.release();
  // As after retentionMs without use.
  await Promise.all(site.fleet.nodes.map((node) => node.cli("DEL", "{palisade}:token:orders/2")));
  await site.server.restoreBackup();
  await site.recovered();
  const store = await site.open();
  expect(await store.read("orders/2")).toMatchObject({ kind: "unknown_resource" });
  expect(await store.write(put("orders/2", first.token, "1"))).toMatchObject({ kind: "stale" });
  expect(await store.transaction({ operations: [put("orders/2", second.token, "1")] })).toMatchObject({ kind: "refused" });
  await expect(site.query(`select palisade.guard('orders/2', ${first.token})`)).rejects.toMatchObject({ code: "PLS01" });
  // Also to the token at which the floor stands: it is the last one that was issued.
  const [{ floor } = {}] = await site.query("select fence_floor::float8 as floor from palisade.lineage");
  const atFloor = { kind: "stale", resource: "orders/2", presentedToken: floor, currentToken: floor };
  expect(await store.write(put("orders/2", Number(floor), "1"))).toEqual(atFloor);
  expect(await store.transaction({ operations: [put("orders/2", Number(floor), "1")] })).toMatchObject({
    kind: "refused",
    refusals: [{ index: 0, refusal: atFloor }],
  });
  expect(await store.write(put("orders/2", (await site.locker.acquire("orders/2")).token, "1"))).toMatchObject({ kind: "accepted" });
});

test("a crash and a restart ask for no recovery: a gateway confirms own tables by itself, and one without lock nodes leaves them alone", async ({
  site,
}) => {
  await site.open({ marks: undefined });
  await site.writeOwn(1);
  await site.server.restart();
  await site.writeOwn(1);
  const store = await site.open();
  expect(await store.ready()).toMatchObject({ ready: true });
  const { token } = await site.locker.acquire("r");
  expect(await store.write(put("r", token, "1"))).toMatchObject({ kind: "accepted" });
  await site.beatAbove(1);
  await site.server.crash();
  await site.server.restart();
  await expect(site.writeOwn(2)).rejects.toMatchObject({ code: "not_recovered" });
  const confirmed = () => {
    site.aSecondLater();
    return site.writeOwn(2).then(
      () => "written",
      ({ code }: { readonly code: string }) => code,
    );
  };
  await expect.poll(confirmed, { interval: 50, timeout: 30_000 }).toBe("written");
  await expect.poll(async () => (await store.write(put("r", token, "2"))).kind).toBe("accepted");
  expect(await store.ready()).toMatchObject({ ready: true });
});

test("an operator who knows that nothing is missing says so, with a reason, and the fences stay", async ({ site }) => {
  const { newer, older } = await writeAfterBackup(site);
  const store = await site.open();
  await site.query("update palisade.lineage set beat = 1, system_identifier = 1");
  expect(await (await site.open()).write(put("orders/1", newer.token, "1"))).toMatchObject(refused);
  expect(await site.recover("--nothing-lost")).toMatchObject({ code: 2, err: expect.stringContaining("--reason") });
  expect(await site.recover("--nothing-lost", "--reason", "pg_upgrade")).toMatchObject({ code: 0 });
  expect(await store.write(put("orders/1", newer.token, "1"))).toMatchObject({ kind: "accepted" });
  expect(await store.write(put("orders/1", older.token, "1"))).toMatchObject({ kind: "stale" });
});

test("a failover to a synchronous standby asks for no recovery", async ({ site }) => {
  const pair = await PostgresPair.start({ replication: "sync" });
  try {
    await migrate(pair.primary.url);
    const store = await site.open({ databaseUrl: pair.primary.url, durability: "sync", verify: undefined });
    expect(await store.write(put("r", 35, "1"))).toMatchObject({ kind: "accepted" });
    const beat = async () => {
      site.aSecondLater();
      return Number((await queryAt<{ beat: string }>(pair.standby.url, "select beat from palisade.lineage"))[0]?.beat);
    };
    await expect.poll(beat, { interval: 20, timeout: 30_000 }).toBeGreaterThan(1);
    await pair.primary.crash();
    await pair.promote();
    const after = await site.open({ databaseUrl: pair.standby.url, verify: undefined });
    expect(await after.write(put("r", 35, "2"))).toMatchObject({ kind: "accepted" });
    expect(await after.ready()).toMatchObject({ ready: true });
  } finally {
    await pair.stop();
  }
});

test("G7 while the lock cannot be asked what the database had, a new gateway writes only if the operator chose so", async ({ site }) => {
  const silent = { mark: () => Promise.reject(new Error("no quorum")) };
  const closed = await site.open({ marks: silent, verify: undefined });
  expect(await closed.write(put("r", 1, "1"))).toMatchObject(refused);
  expect(await closed.ready()).toMatchObject({ ready: false });
  const open = await site.open({ marks: silent, verify: undefined, verifyUnreachable: "accept" });
  expect(await open.write(put("r", 1, "1"))).toMatchObject({ kind: "accepted" });
});

/** Marks that cannot be asked until `answer` is called. */
function silentAtFirst({ locker }: Site) {
  let isSilent = true;
  const mark = (...asked: Parameters<typeof locker.fleet.mark>) =>
    isSilent ? Promise.reject(new Error("no quorum")) : locker.fleet.mark(...asked);
  const answer = () => {
    isSilent = false;
  };
  const fallSilent = () => {
    isSilent = true;
  };
  return { config: { marks: { mark }, verifyUnreachable: "accept" } as const, answer, fallSilent };
}

test("G7 a gateway that opened without the nodes' word counts beats as soon as they can be asked, and nobody has to probe it", async ({
  site,
}) => {
  // Another one has confirmed own tables, so that these are no reason to look.
  expect(await (await site.open()).ready()).toMatchObject({ ready: true });
  const { config, answer } = silentAtFirst(site);
  const store = await site.open({ ...config, verify: undefined });
  expect(await store.write(put("r", 1, "1"))).toMatchObject({ kind: "accepted" });
  const beat = await site.beat();
  answer();
  await site.beatAbove(beat);
});

test("G7 a database whose lineage is gone is not written through, neither over open connections nor behind a pooler", async ({ site }) => {
  const pooler = await Pgbouncer.start({ databaseUrl: site.url, mode: "transaction" });
  try {
    const direct = await site.open({ verify: undefined });
    const pooled = await site.open({ databaseUrl: pooler.urlOf(site.url), verify: undefined });
    for (const store of [direct, pooled]) expect(await store.write(put("r", 1, "1"))).toMatchObject({ kind: "accepted" });
    await site.query("delete from palisade.lineage");
    expect(await pooled.write(put("r", 1, "2"))).toMatchObject(refused);
    expect(await direct.write(put("r", 1, "3"))).toMatchObject(refused);
    await pooled.close();
  } finally {
    await pooler.stop();
  }
});

test("G7 without a lineage the floor of a recovery is unknown, and no name that is new is written", async ({ site }) => {
  await site.recovered();
  await site.query("delete from palisade.lineage");
  const forgetful = await site.open({ marks: undefined, verify: undefined });
  expect(await forgetful.write(put("orders/9", 1, "1"))).not.toMatchObject({ kind: "accepted" });
});
