// The guard through every driver and library, in a transaction that the library opens itself, and in
// those that withFencedTransaction opens: guards first, one COMMIT or none, for every end an answer
// to whether something may be stored (G3), and nothing after it.
import { FaultProxy } from "@palisade/testkit";
import { count, eq } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { integer, pgTable } from "drizzle-orm/pg-core";
import pg from "pg";
import { describe, vi } from "vitest";
import { test as base, expect, uniqueName } from "../../../gateway/test/support/fixtures.js";
import { untilSomebodyWaits } from "../../../gateway/test/support/sql.js";
import { type FencedLease, FencedTransactionError, withFencedTransaction } from "../../src/fenced-transaction.js";
import { guard } from "../../src/guard.js";
import { serverErrorOf } from "../../src/server-error.js";
import { execute, type OpenTransaction, readValue } from "../../src/statement.js";
import { type Driver, drivers, type OpenDriver, type Work } from "../support/drivers.js";

interface Scene extends OpenDriver {
  /** A connection of the test's own. */
  readonly client: pg.Client;
  readonly table: string;
  readonly lease: FencedLease;
  readonly insert: (...values: readonly number[]) => Work;
  readonly stored: () => Promise<number[]>;
}

let tables = 0;
const test = base.extend("play", ({ connect, database }, { onCleanup }) => {
  const opened: OpenDriver[] = [];
  onCleanup(async () => void (await Promise.all(opened.map((open) => open.close()))));
  return async (driver: Driver, { url = database.url, connections = 2 } = {}): Promise<Scene> => {
    const client = await connect();
    const table = `driven_${process.pid}_${++tables}`;
    await client.query(`create table ${table} (token integer)`);
    const open = await driver.open(url, connections);
    opened.push(open);
    return {
      ...open,
      client,
      table,
      lease: { resource: uniqueName(), token: 5 },
      insert:
        (...values) =>
        async (tx) =>
          void (await execute(tx, `insert into ${table} values ${values.map((value) => `(${value})`)}`)),
      stored: async () => (await client.query(`select token from ${table} order by 1`)).rows.map(({ token }) => token as number),
    };
  };
});

const fenceOf = async (client: pg.Client, resource: string): Promise<unknown> =>
  (await client.query("select palisade.fence_of($1) as fence", [resource])).rows[0]?.fence;

/** What a statement, awaited or built, comes to when it fails. */
const failureOf = (sent: PromiseLike<unknown>): Promise<unknown> =>
  Promise.resolve(sent).then(
    () => expect.unreachable("it was sent"),
    (error: unknown) => error,
  );

describe.for(drivers)("the guard through $name", (driver) => {
  test("G1 refuses a stale token in the library's own transaction, which stores nothing", async ({ play }) => {
    const { transaction, insert, stored } = await play(driver);
    const resource = uniqueName();
    const write = (token: number) =>
      transaction(async (tx) => {
        await guard(tx, { resource, token, seq: 1, holder: "worker-7" });
        await insert(token)(tx);
      });
    await write(35);
    const stale = { name: "GuardError", code: "fencing_token_stale", resource, presentedToken: 34, currentToken: 35 };
    await expect(write(34)).rejects.toMatchObject(stale);
    await expect(write(35)).rejects.toMatchObject({ name: "GuardError", code: "sequence_out_of_order" });
    expect(await stored()).toEqual([35]);
  });

  test("G1 is refused outside of a transaction, where it would hold for one statement only", async ({ play }) => {
    const { client, outside, lease } = await play(driver);
    await expect(guard(outside, lease)).rejects.toThrow("guard needs an open transaction");
    expect(await fenceOf(client, lease.resource)).toBeNull();
  });

  test("G4 asks the lock before a fence is raised, and takes any name for what it is", async ({ play }) => {
    const { client, transaction } = await play(driver);
    const resource = `${uniqueName()}/it's ? :id $1 \\ "ü" 'E'😀; select 1`;
    const verify = vi.fn<(name: string, token: number) => Promise<"issued">>(async () => "issued");
    for (const token of [5, 5, 6]) await transaction((tx) => guard(tx, { resource, token, verify }));
    expect(verify.mock.calls).toEqual([5, 6].map((token) => [resource, token]));
    expect(await fenceOf(client, resource)).toBe("6");
  });
});

/** Those whose transactions withFencedTransaction opens. */
const opening = drivers.filter(({ name }) => !name.includes("postgres.js"));

describe.for(opening)("withFencedTransaction through $name", (driver) => {
  test("G1 commits under the guards of all its leases, and nothing when one is stale", async ({ play }) => {
    const { fenced, insert, stored } = await play(driver);
    const [one, other] = [uniqueName(), uniqueName()];
    const leases = (token: number): FencedLease[] => [
      { resource: one, token },
      { resource: other, resources: [other, `${other}/b`], token: 7 },
    ];
    await fenced(leases(35), insert(35));
    const stale = { name: "GuardError", code: "fencing_token_stale" };
    await expect(fenced(leases(34), insert(34))).rejects.toMatchObject({ ...stale, resource: one, currentToken: 35 });
    await expect(fenced({ resource: `${other}/b`, token: 6 }, insert(6))).rejects.toMatchObject({ ...stale, resource: `${other}/b` });
    expect(await stored()).toEqual([35]);
  });

  test("G1 refuses to commit once the signal of a lease has aborted", async ({ play }) => {
    const { fenced, insert, stored, lease } = await play(driver);
    const lost = new AbortController();
    const leases = [lease, { resource: uniqueName(), token: 5, signal: lost.signal }];
    const work = fenced(leases, async (tx) => {
      await insert(5)(tx);
      lost.abort(new Error("the lease ran out"));
    });
    const cause = { message: "the lease ran out" };
    await expect(work).rejects.toMatchObject({ name: "FencedTransactionError", code: "lease_lost", outcome: "not_applied", cause });
    expect(await stored()).toEqual([]);
    const never = vi.fn<Work>();
    await expect(fenced(leases, never)).rejects.toMatchObject({ code: "lease_lost" });
    expect(never).not.toHaveBeenCalled();
  });

  test("G1 G3 refuses what comes after the end of the work, also inside of the next one of a pool of one", async ({ play }) => {
    const { fenced, insert, stored, lease } = await play(driver, { connections: 1 });
    const mistake = new Error("no such order");
    const kept: OpenTransaction[] = [];
    const failed = fenced(lease, async (tx) => {
      kept.push(tx);
      await insert(1)(tx);
      throw mistake;
    });
    await expect(failed).rejects.toBe(mistake);
    await fenced(lease, async (tx) => {
      kept.push(tx);
      await insert(2)(tx);
    });
    const refused = { name: "FencedTransactionError", code: "transaction_over", message: expect.stringContaining("came after its end") };
    const late = async (): Promise<void> => {
      for (const tx of kept) expect(await failureOf(execute(tx, "insert into no_such_table values (666)"))).toMatchObject(refused);
      for (const tx of kept) expect(await failureOf(guard(tx, lease))).toMatchObject(refused);
    };
    await fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await insert(3)(tx);
      await late();
    });
    await late();
    expect(await stored()).toEqual([2, 3]);
  });

  test("G3 under kills what it says is stored is, and what it refuses is not", async ({ play }) => {
    // drizzle keeps a client whose BEGIN failed.
    const connections = driver.name.startsWith("drizzle") ? 50 : 2;
    const { client, outside, fenced, table, insert, stored, lease } = await play(driver, { connections });
    const said: Record<"stored" | "not_applied" | "unknown", number[]> = { stored: [], not_applied: [], unknown: [] };
    for (let id = 1; id <= 40; id++) {
      let kept: OpenTransaction | undefined;
      const work: Work = async (tx) => {
        kept = tx;
        const pid = await readValue(tx, "select pg_backend_pid() as value");
        const kill = () => client.query("select pg_terminate_backend($1)", [pid]);
        if (id % 4 === 1) void kill();
        await insert(id)(tx);
        if (id % 4 === 2) void kill(); // On its way together with COMMIT.
        if (id % 4 !== 3) return;
        await kill();
        await expect.poll(async () => (await client.query("select from pg_stat_activity where pid = $1", [pid])).rowCount).toBe(0);
        // Uses all connections of the pool: nothing that the work sends may go to another one.
        await Promise.allSettled([1, 2].map(() => execute(outside, "select pg_sleep(0.01)")));
        await failureOf(execute(tx, `insert into ${table} values (${-id})`));
      };
      const outcome = await fenced(lease, work).then(
        () => "stored" as const,
        (error: unknown) => (error instanceof FencedTransactionError ? error.outcome : "not_applied"),
      );
      said[outcome].push(id);
      if (kept !== undefined) await failureOf(execute(kept, `insert into ${table} values (${-id})`));
    }
    const found = await stored();
    expect(said.stored.filter((id) => !found.includes(id))).toEqual([]);
    expect(found.filter((id) => !said.stored.includes(id) && !said.unknown.includes(id))).toEqual([]);
    expect([said.stored.length > 0, said.not_applied.length > 0]).toEqual([true, true]);
  });

  test("G3 rolls back what throws, and passes the error on as it is, also where the rollback fails as well", async ({ play }) => {
    const { client, fenced, insert, stored, lease } = await play(driver);
    for (const isCut of [false, true]) {
      const mistake = new Error("the first error");
      const failed = fenced(lease, async (tx) => {
        await insert(5)(tx);
        if (isCut) await client.query("select pg_terminate_backend($1)", [await readValue(tx, "select pg_backend_pid() as value")]);
        throw mistake;
      });
      await expect(failed).rejects.toBe(mistake);
    }
    expect(await stored()).toEqual([]);
  });

  test("G3 does not call committed what Postgres rolled back because a statement had failed", async ({ play }) => {
    const { fenced, insert, stored, lease } = await play(driver);
    const ignoring = fenced(lease, async (tx) => {
      await insert(5)(tx);
      await failureOf(execute(tx, "select 1/0"));
    });
    await expect(ignoring).rejects.toMatchObject({ code: "transaction_failed", outcome: "not_applied" });
    expect(await stored()).toEqual([]);
  });

  test("G1 says that its guards ended when the work commits by itself", async ({ play }) => {
    const { fenced, insert, stored, lease } = await play(driver);
    const selfMade = fenced(lease, async (tx) => {
      await insert(5)(tx);
      await execute(tx, "commit and chain");
      await insert(6)(tx);
    });
    await expect(selfMade).rejects.toMatchObject({ code: "transaction_ended", outcome: "unknown" });
    expect(await stored()).toEqual([5]);
  });

  test("G3 calls a refused COMMIT by its own error: nothing is stored", async ({ play }) => {
    const { client, fenced, table, insert, stored, lease } = await play(driver);
    await client.query(`alter table ${table} add constraint ${table}_once unique (token) deferrable initially deferred`);
    const error = await failureOf(fenced(lease, insert(5, 5)));
    expect(error).not.toBeInstanceOf(FencedTransactionError);
    expect(serverErrorOf(error)).toMatchObject({ code: "23505", severity: "ERROR" });
    expect(await stored()).toEqual([]);
  });

  test("G3 says that the outcome is unknown when the connection is lost during COMMIT", async ({
    play,
    connect,
    database,
    onTestFinished,
  }) => {
    const server = new URL(database.url);
    const proxy = await FaultProxy.start({ upstream: { host: server.hostname, port: Number(server.port) } });
    onTestFinished(() => proxy.stop());
    const { client, fenced, table, insert, stored, lease } = await play(driver, { url: proxy.urlOf(database.url) });
    await client.query(`create table ${table}_latch ()`);
    await beforeCommit(client, table, `lock table ${table}_latch in access share mode`);
    const holder = await connect();
    await holder.query(`begin; lock table ${table}_latch`);
    const lost = expect(fenced(lease, insert(5))).rejects.toMatchObject({
      name: "FencedTransactionError",
      code: "outcome_unknown",
      outcome: "unknown",
      cause: expect.anything(),
    });
    await untilSomebodyWaits(client);
    proxy.cut();
    await lost;
    await holder.query("commit");
    await expect.poll(stored).toEqual([5]);
  });

  test("G3 says so when the server ends the session during COMMIT", async ({ play }) => {
    const { client, fenced, table, insert, stored, lease } = await play(driver);
    await beforeCommit(client, table, "perform pg_terminate_backend(pg_backend_pid())");
    await expect(fenced(lease, insert(5))).rejects.toMatchObject({ code: "outcome_unknown" });
    expect(await stored()).toEqual([]);
  });
});

/** A transaction that wrote to the table does this in COMMIT. */
async function beforeCommit(client: pg.Client, table: string, statement: string): Promise<void> {
  await client.query(`create function ${table}_last() returns trigger language plpgsql as $$ begin ${statement}; return null; end $$`);
  await client.query(
    `create constraint trigger last after insert on ${table} initially deferred for each row execute function ${table}_last()`,
  );
}

const overPg = drivers[0] as Driver;

describe("withFencedTransaction over pg", () => {
  test("G1 raises the fence before the work reads: it sees what the older holder committed", async ({ play, connect }) => {
    const { client: older, fenced, table, insert } = await play(overPg);
    const [observer, resource] = [await connect(), uniqueName()];
    await older.query("begin");
    await guard(older, { resource, token: 34 });
    await insert(34)(older);
    let seen: unknown;
    const newer = fenced({ resource, token: 35 }, async (tx) => {
      seen = await readValue(tx, `select max(token) as value from ${table}`);
    });
    await untilSomebodyWaits(observer);
    await older.query("commit");
    await newer;
    expect(seen).toBe(34);
  });

  test("takes a client as well, and gives back what the work returned", async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    const work = async (tx: pg.Client) => (await tx.query("select 7 as n")).rows;
    expect(await withFencedTransaction(client, { resource, token: 5 }, work)).toEqual([{ n: 7 }]);
    expect(await fenceOf(client, resource)).toBe("5");
  });

  test("G3 a rollback that gets no answer does not hide the first error", async ({ play }) => {
    const { client, outside, fenced, lease } = await play(overPg, { connections: 1 });
    const mistake = new Error("the first error");
    const silent = fenced(lease, async (tx) => {
      void failureOf(execute(tx, "select pg_sleep(3600)"));
      throw mistake;
    });
    await expect(silent).rejects.toBe(mistake);
    await client.query("select pg_terminate_backend(pid) from pg_stat_activity where query = 'select pg_sleep(3600)'");
    expect(await readValue(outside, "select 1 as value")).toBe(1);
  });

  test("two transactions that need the same leases in opposite orders do not deadlock", async ({ play }) => {
    const { fenced } = await play(overPg, { connections: 4 });
    const leases = ["b", "a", "ü", "Z"].map((name) => ({ resource: `${uniqueName()}/${name}`, token: 5 }));
    const both = Array.from({ length: 40 }, (_, index) => fenced(index % 2 === 0 ? leases : leases.toReversed(), async () => undefined));
    expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(both.map(() => "fulfilled"));
  });
});

describe("withFencedTransaction over drizzle", () => {
  test("G1 G3 lends all that its transaction hands out: it works as ever, and ends with it", async ({ play, database, onTestFinished }) => {
    const { table, client, lease } = await play(overPg);
    const items = pgTable(table, { token: integer().notNull() });
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    onTestFinished(() => pool.end());
    const db = drizzle(pool, { schema: { items } });
    type Tx = Parameters<Parameters<typeof db.transaction>[0]>[0];
    const kept: (() => PromiseLike<unknown>)[] = [];
    const seen = await withFencedTransaction(db, lease, async (tx) => {
      expect(
        await tx
          .insert(items)
          .values([{ token: 1 }, { token: 2 }])
          .returning(),
      ).toEqual([{ token: 1 }, { token: 2 }]);
      const low = tx.select({ token: items.token }).from(items).where(eq(items.token, 1)).as("low");
      expect(await tx.select().from(items).innerJoin(low, eq(items.token, low.token))).toEqual([
        { [table]: { token: 1 }, low: { token: 1 } },
      ]);
      const named = tx.$with("named").as(tx.select({ n: count().as("n") }).from(items));
      expect(await tx.with(named).select({ n: named.n }).from(named)).toEqual([{ n: 2 }]);
      const inner: Tx[] = [];
      await tx.transaction(async (nested) => {
        inner.push(nested);
        await nested.update(items).set({ token: 3 }).where(eq(items.token, 1));
      });
      await expect(tx.transaction(async (nested) => nested.rollback())).rejects.toThrow("Rollback");
      const [built, prepared] = [tx.insert(items).values({ token: 666 }), tx.insert(items).values({ token: 667 }).prepare("late")];
      kept.push(
        () => built,
        () => prepared.execute(),
        () => tx.delete(items),
        () => tx.query.items.findMany(),
        () => tx.transaction(async (nested) => nested.delete(items)),
        () => (inner[0] as Tx).insert(items).values({ token: 668 }).returning(),
        () => tx.execute("delete from no_such_table"),
      );
      expect(await tx.$count(items)).toBe(2);
      return await tx.query.items.findMany({ orderBy: (item, { asc }) => asc(item.token) });
    });
    expect(seen).toEqual([{ token: 2 }, { token: 3 }]);
    await withFencedTransaction(db, { resource: uniqueName(), token: 5 }, async (tx) => {
      await tx.insert(items).values({ token: 4 });
      for (const late of kept) expect(await failureOf(late())).toMatchObject({ code: "transaction_over" });
    });
    expect((await client.query(`select token from ${table} order by 1`)).rows).toEqual([2, 3, 4].map((token) => ({ token })));
  });
});

describe("is misuse:", () => {
  const none = async () => undefined;
  const lease = { resource: "r", token: 1 };
  /** Nothing is asked of it. */
  const nowhere = new pg.Pool({ connectionString: "postgres://127.0.0.1:1/nobody-listens" });

  test("G1 a client whose transaction is open already: no fence is raised in that one", async ({ connect }) => {
    const client = await connect();
    const leases = [uniqueName(), uniqueName()].map((resource) => ({ resource, token: 5 }));
    await client.query("begin");
    await expect(withFencedTransaction(client, leases, none)).rejects.toThrow("opens the transaction itself");
    await client.query("commit");
    for (const { resource } of leases) expect(await fenceOf(client, resource)).toBeNull();
  });

  test.for(drivers)("an open transaction of $name", async (driver, { play }) => {
    const { transaction } = await play(driver);
    const nested = transaction((tx) => withFencedTransaction(tx as never, lease, none));
    await expect(nested).rejects.toThrow(/opens the transaction itself|needs a database of/);
  });

  test.for(drivers.filter((driver) => !opening.includes(driver)))(
    "G1 $name, and it says before any I/O what to write in its place",
    async (driver, { play }) => {
      const { fenced } = await play(driver, { url: "postgres://127.0.0.1:1/nobody-listens" });
      const never = vi.fn<Work>();
      await expect(fenced(lease, never)).rejects.toThrow("write sql.begin(async (tx) => { await guard(tx, lease); … }) in its place");
      expect(never).not.toHaveBeenCalled();
    },
  );

  const fenced = withFencedTransaction as (...args: readonly unknown[]) => Promise<unknown>;
  test.for<readonly [string, () => Promise<unknown>, string]>([
    ["a missing lease", () => fenced(nowhere, none), "withFencedTransaction(db, lease, work): the lease is missing"],
    ["a missing work", () => fenced(nowhere, lease), "withFencedTransaction(db, lease, work): the work is missing"],
    ["no lease", () => fenced(nowhere, undefined, none), "a lease is an object with resource and token, not undefined"],
    ["an empty list of leases", () => fenced(nowhere, [], none), "needs a lease"],
    ["a forgotten await", () => fenced(nowhere, Promise.resolve(lease), none), "the lease is a Promise: write await before acquire"],
    ["a forgotten await in a list", () => fenced(nowhere, [Promise.resolve(lease)], none), "write await before acquire"],
    ["a forgotten await of guard", () => guard(nowhere, Promise.resolve(lease) as never), "write await before acquire"],
    ["one resource twice", () => fenced(nowhere, [lease, { ...lease, token: 2 }], none), "appear once"],
    ["no database", () => fenced({}, lease, none), "needs a database of"],
    ["no transaction", () => guard({} as never, lease), "this is no transaction of pg"],
    ["nothing", () => guard(undefined as never, lease), "this is no transaction of pg"],
    ["the token 0", () => fenced(nowhere, { ...lease, token: 0 }, none), "a token is an integer"],
    ["half a token", () => fenced(nowhere, { ...lease, token: 1.5 }, none), "a token is an integer"],
    ["an empty holder", () => fenced(nowhere, { ...lease, holder: "" }, none), "a holder has 1 to"],
    ["the number 0", () => guard(nowhere, { ...lease, seq: 0 }), "a token is an integer"],
  ])("%s", async ([, call, message]) => {
    await expect(call()).rejects.toThrow(message);
  });

  test("a database without the fences, and a role without the right to them: the command is named", async ({ connect, database }) => {
    const elsewhere = await connect(Object.assign(new URL(database.url), { pathname: "/postgres" }).href);
    await expect(withFencedTransaction(elsewhere, lease, none)).rejects.toThrow("run npx @palisade/guard migrate");
    const client = await connect();
    const role = `unknown_${process.pid}`;
    await client.query(`create role ${role} login`);
    try {
      const unknown = await connect(Object.assign(new URL(database.url), { username: role }).href);
      const verify = async () => "issued" as const;
      for (const request of [lease, { ...lease, verify }])
        await expect(withFencedTransaction(unknown, request, none)).rejects.toThrow("run npx @palisade/guard grant ROLE");
      await client.query(`grant usage on schema palisade to ${role}`);
      await unknown.query("begin");
      await expect(guard(unknown, lease)).rejects.toThrow("run npx @palisade/guard grant ROLE");
    } finally {
      await client.query(`drop owned by ${role}; drop role ${role}`);
    }
  });
});
