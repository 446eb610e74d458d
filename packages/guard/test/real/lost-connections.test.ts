// withFencedTransaction over postgres.js, alone and under drizzle, when its connection is lost: the
// library would send what comes later on the next connection, or throw outside of any promise.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { drizzle } from "drizzle-orm/postgres-js";
import type pg from "pg";
import postgres, { type Sql, type TransactionSql } from "postgres";
import { afterEach, describe } from "vitest";
import { expect, test, uniqueName } from "../../../gateway/test/support/store.js";
import { withFencedTransaction } from "../../src/fenced-transaction.js";
import { execute, type OpenTransaction, readValue } from "../../src/statement.js";

const pools: Sql[] = [];
afterEach(async () => {
  await Promise.all(pools.splice(0).map((sql) => sql.end({ timeout: 0 })));
});

/** Of one connection: the next transaction gets the one that takes the place of the lost one. */
function poolOf(url: string): Sql {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  pools.push(sql);
  return sql;
}

type Work = (tx: OpenTransaction) => Promise<void>;
interface Library {
  readonly name: string;
  readonly fenced: (sql: Sql, lease: { readonly resource: string; readonly token: number }, work: Work) => Promise<void>;
  /** A savepoint, or what the library makes of one. */
  readonly inside: (tx: OpenTransaction, work: Work) => Promise<unknown>;
}
interface Nested {
  transaction(work: Work): Promise<unknown>;
}
const libraries: readonly Library[] = [
  {
    name: "postgres.js",
    fenced: (sql, lease, work) => withFencedTransaction(sql, lease, (tx: TransactionSql) => work(tx)),
    inside: (tx, work) => (tx as TransactionSql).savepoint((inner) => work(inner)),
  },
  {
    name: "drizzle over postgres.js",
    fenced: (sql, lease, work) => withFencedTransaction(drizzle(sql), lease, (tx) => work(tx)),
    inside: (tx, work) => (tx as unknown as Nested).transaction(work),
  },
];

async function lose(client: pg.Client, pid: unknown): Promise<void> {
  await client.query("select pg_terminate_backend($1)", [pid]);
  await expect.poll(async () => (await client.query("select from pg_stat_activity where pid = $1", [pid])).rowCount).toBe(0);
}

interface Moment {
  readonly reached: Promise<void>;
  readonly reach: () => void;
}
function moment(): Moment {
  let reach: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return { reached, reach };
}

async function failureOf(sent: PromiseLike<unknown>): Promise<unknown> {
  try {
    await sent;
    return undefined;
  } catch (error) {
    return error;
  }
}

const PID = "select pg_backend_pid() as value";
const END_OF_SESSION = "select pg_terminate_backend(pg_backend_pid())";
let tables = 0;
function tableName(): string {
  tables += 1;
  return `lost_${process.pid}_${tables}`;
}

/** A file whose reader waits for who writes it. */
async function namedPipe(): Promise<{ readonly path: string; readonly remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "palisade-"));
  const path = join(folder, "update.sql");
  await promisify(execFile)("mkfifo", [path]);
  return { path, remove: () => rm(folder, { recursive: true }) };
}

describe.for(libraries)("a lost connection of $name", ({ fenced, inside }) => {
  test.for(["through a savepoint that was open before", "by a statement made before"])(
    "G1 G5 an older holder writes nothing in the newer one's transaction: %s",
    async (way, { connect, database }) => {
      const [client, table, sql] = [await connect(), tableName(), poolOf(database.url)];
      await client.query(`create table ${table} (id integer primary key, writer integer)`);
      await client.query(`insert into ${table} values (1, 0)`);
      await client.query(`select palisade.fence_table('${table}', '${table}/', 'id')`);
      const update = (tx: OpenTransaction, token: number) => execute(tx, `update ${table} set writer = ${token}`);
      const [lost, newerIsOpen, olderHasSent] = [moment(), moment(), moment()];
      const resource = `${table}/1`;
      let refused: unknown;
      const older = fenced(sql, { resource, token: 5 }, async (tx) => {
        const rest: Work = async (handle) => {
          const made = way.includes("statement") ? update(handle, 5) : undefined;
          await lose(client, await readValue(handle, PID));
          lost.reach();
          await newerIsOpen.reached;
          refused = await failureOf(made ?? update(handle, 5));
          olderHasSent.reach();
        };
        await (way.includes("savepoint") ? inside(tx, rest) : rest(tx));
      });
      const olderFails = expect(older).rejects.toThrow();
      await lost.reached;
      await fenced(sql, { resource, token: 6 }, async (tx) => {
        await update(tx, 6);
        newerIsOpen.reach();
        await olderHasSent.reached;
      });
      await olderFails;
      expect(refused).toBeInstanceOf(Error);
      expect((await client.query(`select writer from ${table}`)).rows).toEqual([{ writer: 6 }]);
    },
  );

  test("G3 work that sends another statement when one failed ends with an error", async ({ connect, database }) => {
    const [client, table, sql] = [await connect(), tableName(), poolOf(database.url)];
    await client.query(`create table ${table} (token integer)`);
    let second: unknown;
    const cut = fenced(sql, { resource: uniqueName(), token: 5 }, async (tx) => {
      try {
        await execute(tx, END_OF_SESSION);
      } finally {
        second = await failureOf(execute(tx, `insert into ${table} values (5)`));
      }
    });
    await expect(cut).rejects.toThrow();
    expect(second).toBeInstanceOf(Error);
    expect((await client.query(`select from ${table}`)).rowCount).toBe(0);
  });

  test("G3 the work of a savepoint says why it failed, though the savepoint cannot be rolled back", async ({ connect, database }) => {
    const [client, sql, mistake] = [await connect(), poolOf(database.url), new Error("the first error")];
    const cut = fenced(sql, { resource: uniqueName(), token: 5 }, async (tx) => {
      await inside(tx, async (inner) => {
        await lose(client, await readValue(inner, PID));
        throw mistake;
      });
    });
    await expect(cut).rejects.toBe(mistake);
  });

  test("G3 a savepoint ends in which everything was caught", async ({ database }) => {
    const sql = poolOf(database.url);
    const cut = fenced(sql, { resource: uniqueName(), token: 5 }, async (tx) => {
      await inside(tx, async (inner) => void (await failureOf(execute(inner, END_OF_SESSION))));
    });
    await expect(cut).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET/);
  });

  test("G1 nothing is sent through a transaction that has been committed", async ({ database }) => {
    const sql = poolOf(database.url);
    let late: PromiseLike<unknown> | undefined;
    await fenced(sql, { resource: uniqueName(), token: 5 }, async (tx) => {
      late = execute(tx, "select 1");
    });
    expect(String(await failureOf(late ?? Promise.resolve()))).toMatch(/has ended|Failed query/);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });
});

describe("a transaction of postgres.js", () => {
  const run = (sql: Sql, work: (tx: TransactionSql) => Promise<unknown>) =>
    withFencedTransaction(sql, { resource: uniqueName(), token: 5 }, work);

  test("G1 sends no file that was read while its connection was lost", async ({ connect, database }) => {
    const [client, table, sql, file] = [await connect(), tableName(), poolOf(database.url), await namedPipe()];
    try {
      await client.query(`create table ${table} (token integer)`);
      const cut = run(sql, async (tx) => {
        const reading = tx.file(file.path).execute();
        await lose(client, await readValue(tx, PID));
        await failureOf(sql`select 1`);
        await writeFile(file.path, `insert into ${table} values (5)`);
        await sql`select pg_sleep(0.05)`;
        await reading;
      });
      await expect(cut).rejects.toMatchObject({ code: "CONNECTION_CLOSED" });
      expect((await client.query(`select from ${table}`)).rowCount).toBe(0);
    } finally {
      await file.remove();
    }
  });

  test("G3 ends when the statement behind the one that failed was never sent", async ({ database }) => {
    let ends: readonly PromiseSettledResult<unknown>[] = [];
    const cut = run(poolOf(database.url), async (tx) => {
      ends = await Promise.allSettled([tx`select pg_terminate_backend(pg_backend_pid()), ${1}::integer`, tx`select ${1}::integer`]);
    });
    await expect(cut).rejects.toMatchObject({ code: "CONNECTION_CLOSED" });
    expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  });

  test("G3 ends when rows of a cursor are held until after the loss", async ({ connect, database }) => {
    const [client, sql] = [await connect(), poolOf(database.url)];
    const cut = run(sql, async (tx) => {
      const pid = await readValue(tx, PID);
      await tx`select generate_series(1, 3)`.cursor(1, async () => {
        await lose(client, pid);
      });
    });
    await expect(cut).rejects.toMatchObject({ code: expect.stringMatching(/^(CONNECTION_CLOSED|ECONNRESET)$/) });
    // The first statement on a new connection is told how the former one ended.
    await failureOf(sql`select 1`);
    await run(sql, async (tx) => expect(await tx`select 1 as one`).toEqual([{ one: 1 }]));
  });

  test("G3 is rolled back, and its connection used again, when a statement fails before it is sent", async ({ database }) => {
    const sql = poolOf(database.url);
    const refused = run(sql, async (tx) => await tx`select ${undefined as never}::integer`);
    await expect(refused).rejects.toMatchObject({ code: "UNDEFINED_VALUE" });
    expect(await sql`select pg_current_xact_id_if_assigned() as number`).toEqual([{ number: null }]);
  });

  test("G3 is rolled back when the work lost a connection of its own", async ({ database }) => {
    const [sql, own] = [poolOf(database.url), Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })];
    const fail = async () => {
      throw own;
    };
    await expect(run(sql, (tx) => tx.savepoint(fail))).rejects.toBe(own);
    await expect(run(sql, (tx) => tx`select generate_series(1, 3)`.cursor(1, fail))).rejects.toBe(own);
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  test("G1 commits what its savepoints, files and cursors did", async ({ connect, database }) => {
    const [client, table, sql] = [await connect(), tableName(), poolOf(database.url)];
    await client.query(`create table ${table} (part text)`);
    const folder = await mkdtemp(join(tmpdir(), "palisade-"));
    try {
      const path = join(folder, "insert.sql");
      await writeFile(path, `insert into ${table} values ('file')`);
      const insert = (tx: TransactionSql, part: string) => tx`insert into ${tx(table)} values (${part})`;
      await run(sql, async (tx) => {
        await tx.file(path);
        await tx.savepoint("named", (inner) => insert(inner, "named"));
        await tx.savepoint((inner) => [insert(inner, "one"), insert(inner, "two")]);
        const undone = tx.savepoint(async (inner) => {
          await insert(inner, "undone");
          await inner`select 1/0`;
        });
        await expect(undone).rejects.toMatchObject({ code: "22012" });
        const rows: string[] = [];
        for await (const [row] of tx<{ n: string }[]>`select generate_series(1, 2)::text as n`.cursor(1)) rows.push(row?.n ?? "none");
        await insert(tx, rows.join());
        expect(await failureOf(tx.file(join(folder, "none.sql")))).toMatchObject({ code: "ENOENT" });
      });
      const { rows } = await client.query<{ part: string }>(`select part from ${table} order by 1`);
      expect(rows.map(({ part }) => part)).toEqual(["1,2", "file", "named", "one", "two"]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
