// withFencedTransaction through every driver and library: guards first, one COMMIT or none, and for
// every end an answer to whether something may be stored (G3).
import { FaultProxy } from "@palisade/testkit";
import pg from "pg";
import { afterEach, describe, vi } from "vitest";
import { type Connect, expect, test, uniqueName } from "../../../gateway/test/support/fixtures.js";
import { untilSomebodyWaits } from "../../../gateway/test/support/sql.js";
import { type FencedLease, FencedTransactionError, withFencedTransaction } from "../../src/fenced-transaction.js";
import { guard } from "../../src/guard.js";
import { serverErrorOf } from "../../src/server-error.js";
import { execute, type OpenTransaction, readValue } from "../../src/statement.js";
import { type Driver, drivers, type OpenDriver } from "../support/drivers.js";

const opened: OpenDriver[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((driver) => driver.close()));
});

interface Scene {
  readonly client: pg.Client;
  readonly driver: OpenDriver;
  readonly table: string;
  readonly stored: () => Promise<number[]>;
}

/** Those whose transactions withFencedTransaction opens. */
const opening = drivers.filter(({ name }) => !name.includes("postgres.js"));

async function loseConnection(tx: OpenTransaction, client: pg.Client): Promise<void> {
  const pid = await readValue(tx, "select pg_backend_pid() as value");
  await client.query("select pg_terminate_backend($1)", [pid]);
  await expect.poll(async () => (await client.query("select from pg_stat_activity where pid = $1", [pid])).rowCount).toBe(0);
}

/** Uses all connections of the pool. */
async function connectAgain({ outside }: OpenDriver): Promise<void> {
  await Promise.all(Array.from({ length: 2 }, () => execute(outside, "select pg_sleep(0.05)")));
}

let tables = 0;
async function scene(driver: Driver, { connect, url }: { readonly connect: Connect; readonly url: string }): Promise<Scene> {
  const client = await connect();
  tables += 1;
  const table = `fenced_${process.pid}_${tables}`;
  await client.query(`create table ${table} (token integer)`);
  const open = await driver.open(url);
  opened.push(open);
  const stored = async () =>
    (await client.query<{ token: number }>(`select token from ${table} order by 1`)).rows.map(({ token }) => token);
  return { client, driver: open, table, stored };
}

describe.for(opening)("withFencedTransaction through $name", (driver) => {
  test("G1 commits under the guards of all its leases, and nothing when one is stale", async ({ connect, database }) => {
    const { driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    const [one, other] = [uniqueName(), uniqueName()];
    const leases = (token: number): FencedLease[] => [
      { resource: one, token },
      { resource: other, resources: [other, `${other}/b`], token: 7 },
    ];
    const write = (token: number) =>
      open.fenced(leases(token), async (tx) => void (await execute(tx, `insert into ${table} values (${token})`)));
    await write(35);
    await expect(write(34)).rejects.toMatchObject({ name: "GuardError", code: "fencing_token_stale", resource: one, currentToken: 35 });
    expect(await stored()).toEqual([35]);
    const second = open.fenced({ resource: `${other}/b`, token: 6 }, async () => undefined);
    await expect(second).rejects.toMatchObject({ code: "fencing_token_stale", resource: `${other}/b` });
  });

  test("G1 refuses to commit once the signal of a lease has aborted", async ({ connect, database }) => {
    const { driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    const lease = new AbortController();
    const leases = [
      { resource: uniqueName(), token: 5 },
      { resource: uniqueName(), token: 5, signal: lease.signal },
    ];
    const lost = open.fenced(leases, async (tx) => {
      await execute(tx, `insert into ${table} values (5)`);
      lease.abort(new Error("the lease ran out"));
    });
    await expect(lost).rejects.toMatchObject({
      name: "FencedTransactionError",
      code: "lease_lost",
      outcome: "not_applied",
      cause: { message: "the lease ran out" },
    });
    expect(await stored()).toEqual([]);
    const never = vi.fn<(tx: OpenTransaction) => Promise<void>>();
    await expect(open.fenced(leases, never)).rejects.toMatchObject({ code: "lease_lost" });
    expect(never).not.toHaveBeenCalled();
  });

  test("G3 rolls back what throws, and passes the error on as it is", async ({ connect, database }) => {
    const { driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    const mistake = new Error("no such order");
    const failed = open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await execute(tx, `insert into ${table} values (5)`);
      throw mistake;
    });
    await expect(failed).rejects.toBe(mistake);
    expect(await stored()).toEqual([]);
    await open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => void (await execute(tx, `insert into ${table} values (6)`)));
    expect(await stored()).toEqual([6]);
  });

  test("G3 a rollback that fails as well does not hide the first error", async ({ connect, database }) => {
    const { client, driver: open } = await scene(driver, { connect, url: database.url });
    const mistake = new Error("the first error");
    const cut = open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await loseConnection(tx, client);
      throw mistake;
    });
    await expect(cut).rejects.toBe(mistake);
  });

  test("G1 what the work sends on after its connection was lost is not stored", async ({ connect, database }) => {
    const { client, driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    const seen: unknown[] = [];
    const late = open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await execute(tx, `insert into ${table} values (5)`);
      await loseConnection(tx, client);
      await connectAgain(open);
      await (async () => execute(tx, `insert into ${table} values (6)`))().catch((error: unknown) => seen.push(error));
    });
    await expect(late).rejects.toThrow();
    expect(seen).toEqual([expect.any(Error)]);
    expect(await stored()).toEqual([]);
  });

  test("G3 does not call committed what Postgres rolled back because a statement had failed", async ({ connect, database }) => {
    const { driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    const ignoring = open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await execute(tx, `insert into ${table} values (5)`);
      await Promise.resolve(execute(tx, "select 1/0")).catch(() => undefined);
    });
    await expect(ignoring).rejects.toMatchObject({ code: "transaction_failed", outcome: "not_applied" });
    expect(await stored()).toEqual([]);
  });

  test("G1 says that its guards ended when the work commits by itself", async ({ connect, database }) => {
    const { driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    const selfMade = open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await execute(tx, `insert into ${table} values (5)`);
      await execute(tx, "commit and chain");
      await execute(tx, `insert into ${table} values (6)`);
    });
    await expect(selfMade).rejects.toMatchObject({ code: "transaction_ended", outcome: "unknown" });
    expect(await stored()).toEqual([5]);
  });

  test("G3 calls a refused COMMIT by its own error: nothing is stored", async ({ connect, database }) => {
    const { client, driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    await client.query(`alter table ${table} add constraint ${table}_once unique (token) deferrable initially deferred`);
    const twice = open.fenced({ resource: uniqueName(), token: 5 }, async (tx) => {
      await execute(tx, `insert into ${table} values (5), (5)`);
    });
    const error: unknown = await twice.catch((reason: unknown) => reason);
    expect(error).not.toBeInstanceOf(FencedTransactionError);
    expect(serverErrorOf(error)).toMatchObject({ code: "23505", severity: "ERROR" });
    expect(await stored()).toEqual([]);
  });

  test("G3 says that the outcome is unknown when the connection is lost during COMMIT", async ({ connect, database }) => {
    const server = new URL(database.url);
    const proxy = await FaultProxy.start({ upstream: { host: server.hostname, port: Number(server.port) } });
    try {
      const { client, driver: open, table, stored } = await scene(driver, { connect, url: proxy.urlOf(database.url) });
      await commitsWaitFor(client, table);
      const holder = await connect();
      await holder.query(`begin; lock table ${table}_latch`);
      const lost = open.fenced(
        { resource: uniqueName(), token: 5 },
        async (tx) => void (await execute(tx, `insert into ${table} values (5)`)),
      );
      const outcome = expect(lost).rejects.toMatchObject({
        name: "FencedTransactionError",
        code: "outcome_unknown",
        outcome: "unknown",
        cause: expect.anything(),
      });
      await untilSomebodyWaits(client);
      proxy.cut();
      await outcome;
      await holder.query("commit");
      await expect.poll(stored).toEqual([5]);
    } finally {
      await proxy.stop();
    }
  });

  test("G3 says so when the server ends the session during COMMIT", async ({ connect, database }) => {
    const { client, driver: open, table, stored } = await scene(driver, { connect, url: database.url });
    await client.query(`create function ${table}_end() returns trigger language plpgsql as
      $$ begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$`);
    await client.query(
      `create constraint trigger ends after insert on ${table} initially deferred for each row execute function ${table}_end()`,
    );
    const ended = open.fenced(
      { resource: uniqueName(), token: 5 },
      async (tx) => void (await execute(tx, `insert into ${table} values (5)`)),
    );
    await expect(ended).rejects.toMatchObject({ code: "outcome_unknown" });
    expect(await stored()).toEqual([]);
  });
});

/** A transaction that wrote to the table waits in COMMIT while another locks `<table>_latch`. */
async function commitsWaitFor(client: pg.Client, table: string): Promise<void> {
  await client.query(`create table ${table}_latch ()`);
  await client.query(`create function ${table}_wait() returns trigger language plpgsql as
    $$ begin lock table ${table}_latch in access share mode; return null; end $$`);
  await client.query(
    `create constraint trigger waits after insert on ${table} initially deferred for each row execute function ${table}_wait()`,
  );
}

describe("withFencedTransaction over pg", () => {
  test("G1 raises the fence before the work reads: it sees what the older holder committed", async ({ connect, database }) => {
    const { client: older, driver, table } = await scene(drivers[0] as Driver, { connect, url: database.url });
    const [observer, resource] = [await connect(), uniqueName()];
    await older.query("begin");
    await guard(older, { resource, token: 34 });
    await older.query(`insert into ${table} values (34)`);
    let seen: unknown;
    const newer = driver.fenced({ resource, token: 35 }, async (tx) => {
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
    expect(
      await withFencedTransaction(client, { resource, token: 5 }, async (tx: pg.Client) => (await tx.query("select 7 as n")).rows),
    ).toEqual([{ n: 7 }]);
    expect((await client.query("select palisade.fence_of($1) as fence", [resource])).rows).toEqual([{ fence: "5" }]);
  });

  test("G3 a rollback that gets no answer does not hide the first error", async ({ connect, database }) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const observer = await connect();
    const mistake = new Error("the first error");
    try {
      const silent = withFencedTransaction(pool, { resource: uniqueName(), token: 5 }, async (tx: pg.PoolClient) => {
        tx.query("select pg_sleep(3600)").catch(() => undefined);
        throw mistake;
      });
      await expect(silent).rejects.toBe(mistake);
      await observer.query("select pg_terminate_backend(pid) from pg_stat_activity where query = 'select pg_sleep(3600)'");
      expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    } finally {
      await pool.end();
    }
  });

  test("two transactions that need the same leases in opposite orders do not deadlock", async ({ database }) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 4 });
    const leases = ["b", "a", "ü", "Z"].map((name) => ({ resource: `${uniqueName()}/${name}`, token: 5 }));
    try {
      const both = Array.from({ length: 40 }, (_, index) =>
        withFencedTransaction(
          pool,
          index % 2 === 0 ? leases : leases.toReversed(),
          async (tx: pg.PoolClient) => void (await tx.query("select 1")),
        ),
      );
      expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(both.map(() => "fulfilled"));
    } finally {
      await pool.end();
    }
  });
});

describe("withFencedTransaction is misuse", () => {
  test("G1 on a client whose transaction is open already: no fence is raised in that one", async ({ connect }) => {
    const client = await connect();
    const leases = [uniqueName(), uniqueName()].map((resource) => ({ resource, token: 5 }));
    await client.query("begin");
    await expect(withFencedTransaction(client, leases, async () => undefined)).rejects.toThrow("opens the transaction itself");
    await client.query("commit");
    for (const { resource } of leases)
      expect((await client.query("select palisade.fence_of($1) as fence", [resource])).rows).toEqual([{ fence: null }]);
  });

  test.for(drivers)("inside an open transaction of $name", async (driver, { database }) => {
    const open = await driver.open(database.url);
    opened.push(open);
    const nested = open.transaction((tx) => withFencedTransaction(tx as never, { resource: "r", token: 1 }, async () => undefined));
    await expect(nested).rejects.toThrow(/opens the transaction itself|needs a database of/);
  });

  test.for(drivers.filter((driver) => !opening.includes(driver)))(
    "G1 over $name, and says before any I/O what to write in its place",
    async (driver) => {
      const open = await driver.open("postgres://127.0.0.1:1/nobody-listens");
      opened.push(open);
      const never = vi.fn<(tx: OpenTransaction) => Promise<void>>();
      await expect(open.fenced({ resource: "r", token: 1 }, never)).rejects.toThrow(
        "write sql.begin(async (tx) => { await guard(tx, lease); … }) in its place",
      );
      expect(never).not.toHaveBeenCalled();
    },
  );

  test("without a lease, with one resource twice, with no database, or with a token that is none", async ({ connect }) => {
    const client = await connect();
    const none = async () => undefined;
    await expect(withFencedTransaction(client, [], none)).rejects.toThrow("needs a lease");
    const twice = [
      { resource: "r", token: 1 },
      { resource: "r", token: 2 },
    ];
    await expect(withFencedTransaction(client, twice, none)).rejects.toThrow("appear once");
    await expect(withFencedTransaction({} as never, { resource: "r", token: 1 }, none)).rejects.toThrow("needs a database of");
    for (const token of [0, 1.5, Number.NaN])
      await expect(withFencedTransaction(client, { resource: "r", token }, none)).rejects.toThrow(RangeError);
    await expect(withFencedTransaction(client, { resource: "r", token: 1, holder: "" }, none)).rejects.toThrow(RangeError);
    await client.query("begin");
    await expect(guard(client, { resource: "r", token: 1, seq: 0 })).rejects.toThrow(RangeError);
    await client.query("rollback");
  });
});
