// The fence inside the user's own transactions and on the user's own tables, from pg, from drizzle
// and from plain SQL.
import { GuardError, guard } from "@palisade/guard";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { inTransaction } from "../support/own-table.js";
import { type Connect, describe, expect, test, uniqueName, untilSomebodyWaits } from "../support/store.js";

async function ledger(connect: Connect): Promise<{ readonly client: pg.Client; readonly other: pg.Client; readonly table: string }> {
  const [client, other] = [await connect(), await connect()];
  const table = `ledger_${uniqueName("t").replace(/\W/g, "_")}`;
  await client.query(`create table ${table} (id integer primary key, amount integer not null)`);
  return { client, other, table };
}

describe("guard as the first statement of the user's own transaction", () => {
  test("G1 lets a newer holder's transaction through and fails a stale one as a whole", async ({ connect, store }) => {
    const { client, table } = await ledger(connect);
    const resource = uniqueName();
    await inTransaction(client, async () => {
      await guard(client, { resource, token: 35 });
      await client.query(`insert into ${table} values (1, 35)`);
    });
    const stale = inTransaction(client, async () => {
      await guard(client, { resource, token: 34 });
      await client.query(`update ${table} set amount = 34`);
    });
    await expect(stale).rejects.toMatchObject({
      name: "GuardError",
      code: "fencing_token_stale",
      resource,
      presentedToken: 34,
      currentToken: 35,
    });
    expect((await client.query(`select amount from ${table}`)).rows).toEqual([{ amount: 35 }]);
    expect(await store.write({ op: "put", resource, token: 34, value: "1" })).toMatchObject({ kind: "stale", currentToken: 35 });
  });

  test("G1 makes a newer holder wait for an older one's transaction, and a stale one fail after a newer one's", async ({ connect }) => {
    const { client: older, other: newer, table } = await ledger(connect);
    const observer = await connect();
    const resource = uniqueName();
    await older.query("begin");
    await guard(older, { resource, token: 34 });
    await newer.query("begin");
    const waits = guard(newer, { resource, token: 35 });
    await untilSomebodyWaits(observer);
    await older.query(`insert into ${table} values (1, 34)`);
    await older.query("commit");
    await waits;
    expect((await newer.query(`select amount from ${table}`)).rows).toEqual([{ amount: 34 }]); // The newer holder sees the older one's commit.
    await older.query("begin");
    const tooLate = expect(guard(older, { resource, token: 34 })).rejects.toMatchObject({ code: "fencing_token_stale", currentToken: 35 });
    await untilSomebodyWaits(observer);
    await newer.query("commit");
    await tooLate;
    await older.query("rollback");
  });

  test("a transaction that is rolled back has raised nothing", async ({ connect, store }) => {
    const client = await connect();
    const resource = uniqueName();
    await client.query("begin");
    await guard(client, { resource, token: 35 });
    await client.query("rollback");
    expect(await store.write({ op: "put", resource, token: 34, value: "1" })).toMatchObject({ kind: "accepted" });
  });

  test("checks the sequence within one token", async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    await inTransaction(client, () => guard(client, { resource, token: 5, seq: 2, holder: "worker-7" }));
    await expect(inTransaction(client, () => guard(client, { resource, token: 5, seq: 2 }))).rejects.toMatchObject({
      code: "sequence_out_of_order",
    });
    await inTransaction(client, () => guard(client, { resource, token: 5, seq: 3 }));
    await inTransaction(client, () => guard(client, { resource, token: 6, seq: 1 }));
  });

  test("works the same in a drizzle transaction, which it rolls back", async ({ database }) => {
    const pool = new pg.Pool({ connectionString: database.url, max: 2 });
    try {
      const db = drizzle(pool);
      const resource = uniqueName();
      await db.execute(sql`create table if not exists drizzled (token integer)`);
      const write = (token: number) =>
        db.transaction(async (tx) => {
          await guard(tx, { resource, token });
          await tx.execute(sql`insert into drizzled values (${token})`);
        });
      await write(35);
      await expect(write(34)).rejects.toBeInstanceOf(GuardError);
      expect((await db.execute(sql`select token from drizzled`)).rows).toEqual([{ token: 35 }]);
      await expect(guard(db as never, { resource, token: 36 })).rejects.toThrow("guard needs an open transaction");
      await expect(guard(pool as never, { resource, token: 36 })).rejects.toThrow("guard needs an open transaction");
    } finally {
      await pool.end();
    }
  });

  test("outside a transaction, or with a token that is none, is misuse", async ({ connect }) => {
    const client = await connect();
    await expect(guard(client, { resource: "r", token: 1 })).rejects.toThrow("guard needs an open transaction");
    for (const token of [0, -1, 1.5, 1_000_000_000_000_000, Number.NaN])
      await expect(guard(client, { resource: "r", token })).rejects.toThrow(RangeError);
    await expect(client.query("select palisade.guard('r', 0)")).rejects.toMatchObject({ code: "PLS03" });
    await expect(client.query("select palisade.guard('r', null)")).rejects.toMatchObject({ code: "PLS03" });
    await expect(client.query("select palisade.guard('r', 1, 0)")).rejects.toMatchObject({ code: "PLS03" });
  });

  test("G4 asks the lock about a token only when it would raise the fence", async ({ connect }) => {
    const client = await connect();
    const resource = uniqueName();
    const asked: number[] = [];
    const verify = async (_: string, token: number) => {
      asked.push(token);
      return token > 100 ? ("unissued" as const) : token === 77 ? ("unreachable" as const) : ("issued" as const);
    };
    await inTransaction(client, () => guard(client, { resource, token: 5, verify }));
    await inTransaction(client, () => guard(client, { resource, token: 5, verify }));
    await expect(inTransaction(client, () => guard(client, { resource, token: 4, verify }))).rejects.toMatchObject({
      code: "fencing_token_stale",
    });
    await expect(inTransaction(client, () => guard(client, { resource, token: 101, verify }))).rejects.toMatchObject({
      code: "fencing_token_unissued",
    });
    await expect(inTransaction(client, () => guard(client, { resource, token: 77, verify }))).rejects.toMatchObject({
      code: "verification_unavailable",
    });
    expect(asked).toEqual([5, 101, 77]);
    await inTransaction(client, () => guard(client, { resource, token: 6 }));
  });
});

describe("a fenced table", () => {
  async function fenced(connect: Connect) {
    const { client, other, table } = await ledger(connect);
    await client.query("select palisade.fence_table($1, $2, 'id')", [table, `${table}/`]);
    /** Under one token for the rows with these keys. */
    const write = (token: number, ids: readonly number[], text: string) =>
      inTransaction(client, async () => {
        for (const id of ids) await client.query("select palisade.present($1, $2)", [`${table}/${id}`, token]);
        await client.query(text);
      });
    return { client, other, table, write };
  }

  test("G1 refuses every row that a stale token touches, and derives the resource from the row", async ({ connect, store }) => {
    const { client, table, write } = await fenced(connect);
    await write(35, [1, 2], `insert into ${table} values (1, 0), (2, 0)`);
    await store.write({ op: "seal", resource: `${table}/2`, token: 40 });
    const stale = (fence: string) => ({ code: "PLS01", detail: fence });
    await expect(write(34, [1], `update ${table} set amount = 34 where id = 1`)).rejects.toMatchObject(stale("35"));
    await expect(write(35, [1, 2], `update ${table} set amount = 35`)).rejects.toMatchObject(stale("40"));
    await expect(write(34, [1], `delete from ${table} where id = 1`)).rejects.toMatchObject(stale("35"));
    await write(35, [1], `update ${table} set amount = 1 where id = 1`);
    await write(40, [2], `delete from ${table} where id = 2`);
    await expect(write(39, [2], `insert into ${table} values (2, 39)`)).rejects.toMatchObject(stale("40")); // Deleted, and still fenced.
    expect((await client.query(`select * from ${table}`)).rows).toEqual([{ id: 1, amount: 1 }]);
  });

  test("G1 guards both names of a row whose key changes", async ({ connect, store }) => {
    const { table, write } = await fenced(connect);
    await write(5, [1], `insert into ${table} values (1, 0)`);
    await store.write({ op: "seal", resource: `${table}/2`, token: 9 });
    await expect(write(8, [1, 2], `update ${table} set id = 2`)).rejects.toMatchObject({ code: "PLS01", detail: "9" });
    for (const ids of [[1], [2]]) await expect(write(9, ids, `update ${table} set id = 2`)).rejects.toMatchObject({ code: "PLS03" });
    await write(9, [1, 2], `update ${table} set id = 2`);
    await expect(write(8, [1], `insert into ${table} values (1, 0)`)).rejects.toMatchObject({ code: "PLS01" });
  });

  test("G2 refuses a write without a token, also after a transaction that had one", async ({ connect }) => {
    const { client, table, write } = await fenced(connect);
    const insert = `insert into ${table} values (1, 0)`;
    await expect(client.query(insert)).rejects.toMatchObject({ code: "PLS03" });
    await write(5, [1], insert);
    await expect(client.query(`update ${table} set amount = 1`)).rejects.toMatchObject({ code: "PLS03" });
    for (const malformed of [0, -5, 1_000_000_000_000_000])
      await expect(write(malformed, [1], insert)).rejects.toMatchObject({ code: "PLS03" });
  });

  test("G2 refuses a token that leaked from another transaction over the same connection", async ({ connect }) => {
    const { client, table, write } = await fenced(connect);
    await write(5, [1], `insert into ${table} values (1, 0)`);
    await write(9, [1], "select 1");
    await expect(client.query(`update ${table} set amount = 9`)).rejects.toMatchObject({ code: "PLS03" });
    // What an earlier version kept the token in. A plain SET outlives its transaction, and a pool
    // hands the connection on.
    for (const setting of ["9", "9@", "@9", "9@1", "x"]) {
      await client.query("select set_config('palisade.token', $1, false)", [setting]);
      await expect(client.query(`update ${table} set amount = 9`)).rejects.toMatchObject({ code: "PLS03" });
    }
    expect((await client.query(`select amount from ${table}`)).rows).toEqual([{ amount: 0 }]);
  });

  test("cannot be truncated, which would pass no row to the fence", async ({ connect }) => {
    const { client, table } = await fenced(connect);
    await expect(client.query(`truncate ${table}`)).rejects.toMatchObject({ code: "PLS04" });
    await expect(client.query(`truncate ${table} cascade`)).rejects.toMatchObject({ code: "PLS04" });
  });

  test("may have a key of several columns, and needs every one of them", async ({ connect, store }) => {
    const { client } = await ledger(connect);
    const table = `pairs_${uniqueName("t").replace(/\W/g, "_")}`;
    await client.query(`create table ${table} (region text, "order" integer, amount integer)`);
    await client.query(`select palisade.fence_table('${table}', 'pairs/', 'region', 'order')`);
    const insert = (region: string) =>
      inTransaction(client, async () => {
        await client.query("select palisade.present('pairs/eu/7', 5)");
        await client.query(`insert into ${table} values (${region}, 7, 0)`);
      });
    await insert("'eu'");
    expect(await store.read("pairs/eu/7")).toMatchObject({ token: 5 });
    await expect(insert("null")).rejects.toMatchObject({ code: "PLS03" });
    await expect(client.query(`select palisade.fence_table('${table}', 'pairs/', 'nonsense')`)).rejects.toMatchObject({ code: "42703" });
  });

  test("does not deadlock when two holders write its rows in opposite orders within one statement each", async ({ connect }) => {
    const { client, other, table, write } = await fenced(connect);
    const ids = Array.from({ length: 50 }, (_, i) => i + 1);
    await write(1, ids, `insert into ${table} select id, 0 from generate_series(1, 50) as id`);
    const many = async (session: pg.Client, order: "asc" | "desc") => {
      const resources = (order === "asc" ? ids : [...ids].reverse()).map((id) => `${table}/${id}`);
      for (let round = 0; round < 10; round += 1)
        await inTransaction(session, async () => {
          await session.query("select palisade.guard_all($1, $2)", [resources, resources.map(() => 1)]);
          await session.query(`update ${table} set amount = amount + 1 where id in (select id from ${table} order by id ${order})`);
        });
    };
    await Promise.all([many(client, "asc"), many(other, "desc")]);
    expect((await client.query(`select distinct amount from ${table}`)).rows).toEqual([{ amount: 20 }]);
  });
});
