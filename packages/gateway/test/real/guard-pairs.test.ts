// G5: a transaction holds a set of pairs of resource and token, proved at its start, and a guarded
// row is written only under the pair of exactly its own resource.
import { connectTo, PostgresServer } from "@palisade/testkit";
import { test as base } from "@palisade/testkit/vitest";
import type pg from "pg";
import { migrate } from "../../src/store/migrate.js";
import { fencedTable, fenceOf, inTransaction, type Pair, tableName, writeUnder } from "../support/own-table.js";
import { type Connect, describe, expect, test, uniqueName, untilSomebodyWaits } from "../support/store.js";

const noPair = { code: "PLS03" };

async function accounts(connect: Connect) {
  const [client, other] = [await connect(), await connect()];
  const table = await fencedTable(client, "id integer primary key, amount integer not null", "id");
  const resource = (id: number): string => `${table}/${id}`;
  await writeUnder(
    client,
    [
      [resource(7), 3],
      [resource(8), 3],
    ],
    `insert into ${table} values (7, 0), (8, 0)`,
  );
  const amounts = async () => (await client.query<{ id: number; amount: number }>(`select * from ${table} order by id`)).rows;
  return { client, other, table, resource, amounts };
}

describe("the pairs of a transaction", () => {
  test("G5 a token that was won for one resource neither writes nor raises another", async ({ connect }) => {
    const { client, table, resource, amounts } = await accounts(connect);
    const foreign = writeUnder(client, [[resource(7), 34]], `update ${table} set amount = 34 where id = 8`);
    await expect(foreign).rejects.toMatchObject(noPair);
    expect(await fenceOf(client, resource(8))).toBe(3);
    await writeUnder(client, [[resource(8), 4]], `update ${table} set amount = 4 where id = 8`);
    expect(await amounts()).toEqual([
      { id: 7, amount: 0 },
      { id: 8, amount: 4 },
    ]);
  });

  test("G5 two leases in one transaction write the rows of both and of nothing else", async ({ connect }) => {
    const { client, table, resource, amounts } = await accounts(connect);
    const both: Pair[] = [
      [resource(8), 9],
      [resource(7), 5],
    ];
    await writeUnder(client, both, `update ${table} set amount = 1`);
    await expect(writeUnder(client, both, `update ${table} set amount = 2`, `insert into ${table} values (9, 2)`)).rejects.toMatchObject(
      noPair,
    );
    expect(await amounts()).toEqual([
      { id: 7, amount: 1 },
      { id: 8, amount: 1 },
    ]);
    expect([await fenceOf(client, resource(7)), await fenceOf(client, resource(8))]).toEqual([5, 9]);
  });

  test("G5 guard presents its pair, so that a fenced table can be written after it", async ({ connect }) => {
    const { client, table, resource } = await accounts(connect);
    await inTransaction(client, async () => {
      expect((await client.query("select palisade.guard($1, 6) as token", [resource(7)])).rows).toEqual([{ token: "6" }]);
      await client.query(`update ${table} set amount = 6 where id = 7`);
    });
    await expect(
      inTransaction(client, async () => {
        await client.query("select palisade.guard($1, 5)", [resource(7)]);
        await client.query(`update ${table} set amount = 5 where id = 7`);
      }),
    ).rejects.toMatchObject({ code: "PLS01", detail: "6" });
  });

  test("G5 every function that presents answers with a value that is not void", async ({ connect }) => {
    const client = await connect();
    const one = uniqueName();
    const { rows } = await inTransaction(client, () =>
      client.query("select palisade.guard($1, 1) as a, palisade.present($1, 2) as b, palisade.guard_all(array[$1], array[3]) as c", [one]),
    );
    expect(rows).toEqual([{ a: "1", b: "2", c: "1" }]);
  });

  test("G5 pairs given in one call are taken in the order of their names, so that two callers cannot deadlock", async ({ connect }) => {
    const [client, other] = [await connect(), await connect()];
    const names = Array.from({ length: 40 }, () => uniqueName("many"));
    const guardAll = (session: pg.Client, resources: readonly string[]) =>
      inTransaction(session, () => session.query("select palisade.guard_all($1, $2)", [resources, resources.map(() => 5)]));
    for (let round = 0; round < 20; round += 1) await Promise.all([guardAll(client, names), guardAll(other, [...names].reverse())]);
    expect(await fenceOf(client, names[0] ?? "")).toBe(5);
  });

  test("G5 pairs given in one call are refused as a whole when one is stale, has no token or is malformed", async ({ connect }) => {
    const client = await connect();
    const [fresh, stale] = [uniqueName(), uniqueName()];
    await client.query("select palisade.guard($1, 35)", [stale]);
    const guardAll = (resources: readonly (string | null)[], tokens: readonly (number | null)[]) =>
      client.query("select palisade.guard_all($1, $2)", [resources, tokens]);
    await expect(guardAll([fresh, stale], [9, 34])).rejects.toMatchObject({ code: "PLS01", detail: "35" });
    await expect(guardAll([fresh, stale], [9])).rejects.toMatchObject(noPair);
    await expect(guardAll([fresh, null], [9, 9])).rejects.toMatchObject(noPair);
    await expect(guardAll([fresh], [0])).rejects.toMatchObject(noPair);
    await expect(guardAll([], [])).rejects.toMatchObject(noPair);
    expect(await fenceOf(client, fresh)).toBeNull();
  });
});

describe("a pair is good for its own transaction only", () => {
  test("G5 not for the next one on the same connection, as through a pooler, nor outside of any", async ({ connect }) => {
    const { client, table, resource } = await accounts(connect);
    const write = `update ${table} set amount = 9 where id = 7`;
    await writeUnder(client, [[resource(7), 9]]);
    await expect(client.query(write)).rejects.toMatchObject(noPair);
    await expect(inTransaction(client, () => client.query(write))).rejects.toMatchObject(noPair);
    await client.query("select palisade.guard($1, 9)", [resource(7)]);
    await expect(client.query(write)).rejects.toMatchObject(noPair);
  });

  test("G5 not for another session, and no setting stands for it", async ({ connect }) => {
    const { client, other, table, resource } = await accounts(connect);
    const write = `update ${table} set amount = 9 where id = 8`;
    await client.query("begin");
    await client.query("select palisade.present($1, 9)", [resource(7)]);
    await expect(other.query(write)).rejects.toMatchObject(noPair);
    const { rows } = await client.query<{ xid: string }>("select pg_current_xact_id()::text as xid");
    for (const value of ["9", `9@${rows[0]?.xid}`, `${resource(8)}@9@${rows[0]?.xid}`]) {
      await client.query("savepoint before");
      await client.query("select set_config('palisade.token', $1, true)", [value]);
      await expect(client.query(write)).rejects.toMatchObject(noPair);
      await client.query("rollback to before");
    }
    await client.query("rollback");
  });

  test("G5 a savepoint that is rolled back takes its pairs with it, and keeps those from before", async ({ connect }) => {
    const { client, table, resource, amounts } = await accounts(connect);
    await inTransaction(client, async () => {
      await client.query("select palisade.present($1, 9)", [resource(7)]);
      await client.query("savepoint before");
      await client.query("select palisade.present($1, 9)", [resource(8)]);
      await client.query(`update ${table} set amount = 1 where id = 8`);
      await client.query("rollback to before");
      await client.query(`update ${table} set amount = 2 where id = 7`);
      await client.query("savepoint again");
      await expect(client.query(`update ${table} set amount = 3 where id = 8`)).rejects.toMatchObject(noPair);
      await client.query("rollback to again");
    });
    expect(await amounts()).toEqual([
      { id: 7, amount: 2 },
      { id: 8, amount: 0 },
    ]);
    expect(await fenceOf(client, resource(8))).toBe(3);
  });

  test("G5 a pair that was presented inside a released savepoint or a function's block stays", async ({ connect }) => {
    const { client, table, resource } = await accounts(connect);
    await inTransaction(client, async () => {
      await client.query("savepoint inner_one");
      await client.query("select palisade.present($1, 9)", [resource(7)]);
      await client.query("release inner_one");
      await client.query(
        `do $$ begin perform palisade.present('${resource(8)}', 9); exception when division_by_zero then raise; end $$; update ${table} set amount = 4`,
      );
    });
    expect((await client.query(`select distinct amount from ${table}`)).rows).toEqual([{ amount: 4 }]);
  });

  test("G5 in a read-only transaction a pair cannot be presented", async ({ connect }) => {
    const client = await connect();
    await client.query("begin read only");
    await expect(client.query("select palisade.present($1, 9)", [uniqueName()])).rejects.toMatchObject({ code: "25006" });
    await client.query("rollback");
  });

  for (const level of ["repeatable read", "serializable"])
    test(`G5 under ${level} a holder that waited for another begins again, and whoever read before presenting too`, async ({ connect }) => {
      const { client, other, table, resource } = await accounts(connect);
      const observer = await connect();
      const begin = `begin isolation level ${level}`;
      await client.query(begin);
      await client.query("select palisade.present($1, 5)", [resource(7)]);
      await other.query(begin);
      const waits = expect(other.query("select palisade.present($1, 6)", [resource(7)])).rejects.toMatchObject({ code: "40001" });
      await untilSomebodyWaits(observer);
      await client.query(`update ${table} set amount = 5 where id = 7`);
      await client.query("commit");
      await waits;
      await other.query("rollback");
      await other.query(begin);
      await other.query(`select amount from ${table} where id = 7`);
      await writeUnder(client, [[resource(7), 6]], `update ${table} set amount = amount + 1 where id = 7`);
      await expect(other.query("select palisade.present($1, 7)", [resource(7)])).rejects.toMatchObject({ code: "40001" });
      await other.query("rollback");
    });

  test("G5 the new holder's first read after its guard sees what the old one committed while it waited", async ({ connect }) => {
    const { client, other, table, resource } = await accounts(connect);
    const observer = await connect();
    await client.query("begin");
    await client.query("select palisade.present($1, 5)", [resource(7)]);
    await other.query("begin");
    const waits = other.query("select palisade.present($1, 6)", [resource(7)]);
    await untilSomebodyWaits(observer);
    await client.query(`update ${table} set amount = amount + 10 where id = 7`);
    await client.query("commit");
    await waits;
    expect((await other.query(`select amount from ${table} where id = 7`)).rows).toEqual([{ amount: 10 }]);
    await other.query("commit");
  });

  test("G5 transactions that write fenced rows after presenting do not deadlock with those that guard", async ({ connect }) => {
    const { client, other, table, resource } = await accounts(connect);
    const sessions = [client, other, await connect(), await connect()];
    const calls = ["guard", "present", "guard", "present"];
    const run = async (session: pg.Client, call: string) => {
      for (let round = 0; round < 40; round += 1)
        await inTransaction(session, async () => {
          await session.query(`select palisade.${call}($1, 5)`, [resource(7)]);
          await session.query(`update ${table} set amount = amount + 1 where id = 7`);
        });
    };
    await Promise.all(sessions.map((session, i) => run(session, calls[i] ?? "")));
    expect((await client.query(`select amount from ${table} where id = 7`)).rows).toEqual([{ amount: 160 }]);
  });
});

base("G5 a prepared transaction keeps its pairs and its fences until it is committed, and leaves none to its session", async () => {
  await using server = await PostgresServer.start({ settings: { max_prepared_transactions: "4" } });
  await migrate(server.url);
  await using client = await connectTo(server.url);
  await using other = await connectTo(server.url);
  const table = await fencedTable(client, "id integer, amount integer not null", "id");
  const name = tableName("prepared");
  await client.query("begin");
  await client.query("select palisade.present($1, 5)", [`${table}/1`]);
  await client.query(`insert into ${table} values (1, 5)`);
  await client.query(`prepare transaction '${name}'`);
  await expect(client.query(`insert into ${table} values (1, 6)`)).rejects.toMatchObject(noPair);
  await other.query("set lock_timeout = 100");
  await expect(other.query("select palisade.guard($1, 6)", [`${table}/1`])).rejects.toMatchObject({ code: "55P03" });
  await other.query(`commit prepared '${name}'`);
  await writeUnder(other, [[`${table}/1`, 6]], `update ${table} set amount = 6`);
  await expect(client.query("select palisade.guard($1, 5)", [`${table}/1`])).rejects.toMatchObject({ code: "PLS01", detail: "6" });
});
