// G5: no row of a fenced table changes past the fence: neither by what other triggers do to it, nor
// through its partitions, its children or the keys that refer to it.
import type pg from "pg";
import { fence, fencedTable, inTransaction, tableName, writeUnder } from "../support/own-table.js";
import { type Connect, describe, expect, test } from "../support/store.js";

const noPair = { code: "PLS03" };
const truncated = { code: "PLS04" };
const partNotFenced = { code: "PLS06" };

describe("what other triggers do to a row", () => {
  test("G5 a key that a later trigger changes is guarded as it is stored", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "id integer, amount integer", "id");
    await writeUnder(client, [[`${table}/2`, 35]], `insert into ${table} values (2, 35)`);
    await writeUnder(client, [[`${table}/2`, 35]], `delete from ${table}`);
    await client.query(`create function ${table}_move() returns trigger language plpgsql as $$ begin new.id := 2; return new; end $$`);
    await client.query(`create trigger zzz_last before insert or update on ${table} for each row execute function ${table}_move()`);
    const stale = writeUnder(client, [[`${table}/1`, 34]], `insert into ${table} values (1, 34)`);
    await expect(stale).rejects.toMatchObject(noPair);
    await writeUnder(client, [[`${table}/2`, 35]], `insert into ${table} values (1, 35)`);
    expect((await client.query(`select * from ${table}`)).rows).toEqual([{ id: 2, amount: 35 }]);
  });

  test("G5 a generated key is guarded by its value", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "region text, no integer, k text generated always as (region || '-' || no) stored", "k");
    await writeUnder(client, [[`${table}/eu-7`, 35]], `insert into ${table} values ('eu', 7)`);
    await expect(writeUnder(client, [[`${table}/eu-7`, 36]], `update ${table} set no = 8`)).rejects.toMatchObject(noPair);
    await writeUnder(
      client,
      [
        [`${table}/eu-7`, 36],
        [`${table}/eu-8`, 1],
      ],
      `update ${table} set no = 8`,
    );
    expect((await client.query(`select k from ${table}`)).rows).toEqual([{ k: "eu-8" }]);
  });

  test("G5 an insert that becomes an update, a merge, a copy of rows and a returning clause are guarded", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "id integer primary key, amount integer", "id");
    await writeUnder(client, [[`${table}/1`, 5]], `insert into ${table} values (1, 0)`);
    for (const text of [
      `insert into ${table} values (1, 9) on conflict (id) do update set amount = excluded.amount`,
      `merge into ${table} using (values (1)) as v(id) on v.id = ${table}.id when matched then update set amount = 9`,
      `merge into ${table} using (values (1)) as v(id) on v.id = ${table}.id when matched then delete`,
      `insert into ${table} select 2, 9`,
      `with gone as (delete from ${table} returning *) select * from gone`,
    ])
      await expect(writeUnder(client, [[`${table}/3`, 9]], text), text).rejects.toMatchObject(noPair);
    expect((await client.query(`select * from ${table}`)).rows).toEqual([{ id: 1, amount: 0 }]);
  });
});

async function partitioned(connect: Connect) {
  const client = await connect();
  const table = tableName("parts");
  await client.query(`create table ${table} (id integer, amount integer, primary key (id)) partition by range (id)`);
  await client.query(`create table ${table}_a partition of ${table} for values from (0) to (10)`);
  await client.query(`create table ${table}_b partition of ${table} for values from (10) to (20) partition by range (id)`);
  await client.query(`create table ${table}_b1 partition of ${table}_b for values from (10) to (20)`);
  await fence(client, table, ["id"]);
  const under = (client: pg.Client, ids: readonly number[], text: string) =>
    writeUnder(
      client,
      ids.map((id) => [`${table}/${id}`, 5] as const),
      text,
    );
  await under(client, [1, 11], `insert into ${table} values (1, 0), (11, 0)`);
  return { client, table, under };
}

describe("a partitioned table", () => {
  test("G5 is guarded through each of its partitions, for writes and for truncate", async ({ connect }) => {
    const { client, table, under } = await partitioned(connect);
    for (const part of [table, `${table}_a`, `${table}_b`, `${table}_b1`]) {
      await expect(client.query(`truncate ${part}`), part).rejects.toMatchObject(truncated);
      await expect(client.query(`update ${part} set amount = 1`), part).rejects.toMatchObject(noPair);
      await expect(client.query(`delete from ${part}`), part).rejects.toMatchObject(noPair);
      await under(client, [1, 11], `update ${part} set amount = amount + 1`);
    }
    await expect(client.query(`insert into ${table}_a values (2, 0)`)).rejects.toMatchObject(noPair);
  });

  test("G5 a row that moves to another partition is guarded under both names", async ({ connect }) => {
    const { client, table, under } = await partitioned(connect);
    for (const ids of [[1], [12], []])
      await expect(under(client, ids, `update ${table} set id = 12 where id = 1`)).rejects.toMatchObject(noPair);
    await under(client, [1, 12], `update ${table} set id = 12 where id = 1`);
  });

  test("G5 a partition that was made or attached later must be fenced before it is written", async ({ connect }) => {
    const { client, table, under } = await partitioned(connect);
    await client.query(`create table ${table}_c partition of ${table} for values from (20) to (30)`);
    await client.query(`create table ${table}_d (id integer primary key, amount integer); insert into ${table}_d values (31, 0)`);
    await client.query(`alter table ${table} attach partition ${table}_d for values from (30) to (40)`);
    const refused = { ...partNotFenced, hint: expect.stringContaining("palisade.fence_table") };
    for (const text of [`insert into ${table} values (21, 0)`, `update ${table} set amount = 1`, `delete from ${table}_d`])
      await expect(under(client, [1, 11, 21, 31], text), text).rejects.toMatchObject(refused);
    await under(client, [1], `update ${table} set amount = 1 where id = 1`);
    await fence(client, table, ["id"]);
    await under(client, [21, 31], `insert into ${table} values (21, 0); update ${table}_d set amount = 1`);
    await expect(client.query(`delete from ${table} where id = 31`)).rejects.toMatchObject(noPair);
    for (const part of ["c", "d"]) await expect(client.query(`truncate ${table}_${part}`)).rejects.toMatchObject(truncated);
  });

  test("a partition that was detached is a table of its own, and can be fenced as one", async ({ connect }) => {
    const { client, table, under } = await partitioned(connect);
    await client.query(`alter table ${table} detach partition ${table}_a`);
    await client.query("select palisade.fence_table($1, $2, 'id')", [`${table}_a`, `${table}/`]);
    await expect(client.query(`delete from ${table}_a`)).rejects.toMatchObject(noPair);
    await expect(client.query(`truncate ${table}_a`)).rejects.toMatchObject(truncated);
    await under(client, [1], `delete from ${table}_a`);
  });
});

describe("a table with children", () => {
  async function inherited(connect: Connect) {
    const client = await connect();
    const table = tableName("family");
    await client.query(`create table ${table} (id integer, amount integer); create table ${table}_child () inherits (${table})`);
    await client.query(`create table ${table}_grandchild (more text) inherits (${table}_child)`);
    await client.query(`insert into ${table}_child values (1, 0); insert into ${table}_grandchild values (2, 0)`);
    await fence(client, table, ["id"]);
    return { client, table };
  }

  test("G5 is guarded through each of its children, for writes and for truncate", async ({ connect }) => {
    const { client, table } = await inherited(connect);
    for (const part of [table, `${table}_child`, `${table}_grandchild`]) {
      await expect(client.query(`update ${part} set amount = 1`), part).rejects.toMatchObject(noPair);
      await expect(client.query(`delete from ${part}`), part).rejects.toMatchObject(noPair);
      await expect(client.query(`truncate ${part}`), part).rejects.toMatchObject(truncated);
    }
    await writeUnder(
      client,
      [
        [`${table}/1`, 5],
        [`${table}/2`, 6],
      ],
      `update ${table} set amount = 1`,
    );
  });

  test("G5 a child that was made later must be fenced before the table is written again", async ({ connect }) => {
    const { client, table } = await inherited(connect);
    await client.query(`create table ${table}_late () inherits (${table}_child); insert into ${table}_late values (3, 0)`);
    for (const part of [table, `${table}_child`])
      await expect(client.query(`update ${part} set amount = 9`)).rejects.toMatchObject(partNotFenced);
    await fence(client, table, ["id"]);
    await expect(client.query(`update ${table} set amount = 9`)).rejects.toMatchObject(noPair);
    await expect(client.query(`truncate ${table}_late`)).rejects.toMatchObject(truncated);
  });
});

describe("foreign keys", () => {
  for (const action of ["on delete cascade", "on delete set null", "on update cascade"])
    test(`G5 a fenced row that would change by ${action} needs its pair`, async ({ connect }) => {
      const client = await connect();
      const parent = tableName("parent");
      await client.query(`create table ${parent} (id integer primary key); insert into ${parent} values (1)`);
      const key = action === "on update cascade" ? "parent" : "id";
      const table = await fencedTable(client, `id integer, parent integer references ${parent} ${action}`, key);
      await writeUnder(client, [[`${table}/1`, 5]], `insert into ${table} values (1, 1)`);
      const change = action.startsWith("on update") ? `update ${parent} set id = 2` : `delete from ${parent}`;
      await expect(client.query(change)).rejects.toMatchObject(noPair);
      await writeUnder(
        client,
        [
          [`${table}/1`, 5],
          [`${table}/2`, 5],
        ],
        change,
      );
    });

  test("G5 a truncate that cascades to a fenced table is refused", async ({ connect }) => {
    const client = await connect();
    const parent = tableName("parent");
    await client.query(`create table ${parent} (id integer primary key)`);
    await fencedTable(client, `id integer, parent integer references ${parent}`, "id");
    await expect(client.query(`truncate ${parent} cascade`)).rejects.toMatchObject(truncated);
  });
});

describe("fencing a table", () => {
  test("may be done again with another key, and needs a key of columns that exist, each once", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "id integer, other integer", "id");
    await fence(client, table, ["other"]);
    await writeUnder(client, [[`${table}/2`, 5]], `insert into ${table} values (1, 2)`);
    await expect(fence(client, table, [])).rejects.toMatchObject({ code: "22023" });
    await expect(fence(client, table, ["id", "id"])).rejects.toMatchObject({ code: "22023" });
    await expect(fence(client, table, ["nonsense"])).rejects.toMatchObject({ code: "42703" });
    await expect(fence(client, table, ["ctid"])).rejects.toMatchObject({ code: "42703" });
    const functions = await client.query("select from pg_proc where proname like $1", [`palisade_guard_%${table}`]);
    expect(functions.rowCount).toBe(1);
  });

  test("is refused for views, foreign and temporary tables", async ({ connect }) => {
    const client = await connect();
    const view = tableName("view");
    await client.query(`create view ${view} as select 1 as id; create temporary table only_mine (id integer)`);
    for (const relation of [view, "only_mine", "palisade.resources"])
      await expect(client.query("select palisade.fence_table($1, 'x/', 'id')", [relation])).rejects.toMatchObject({ code: "42809" });
  });

  test("can be undone: the table is an ordinary one afterwards, with nothing of the fence left on it", async ({ connect }) => {
    const { client, table } = await partitioned(connect);
    await client.query("select palisade.unfence_table($1)", [table]);
    await client.query(`update ${table} set amount = 1; truncate ${table}_a; truncate ${table}`);
    const { rows } = await client.query("select from pg_proc where proname like $1", [`palisade_guard_%${table}`]);
    expect(rows).toEqual([]);
    await expect(client.query("select palisade.unfence_table($1)", [table])).rejects.toMatchObject({ code: "42704" });
  });

  test("keeps working for a table that is renamed, moved or given other columns", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "id integer, amount integer", "id");
    await client.query(`create schema s_${table}; alter table ${table} add column more text; alter table ${table} drop column amount`);
    await client.query(`alter table ${table} rename to renamed_${table}; alter table renamed_${table} set schema s_${table}`);
    const where = `s_${table}.renamed_${table}`;
    await inTransaction(client, async () => {
      await client.query("select palisade.guard($1, 5)", [`${table}/1`]);
      await client.query(`insert into ${where} values (1, 'x')`);
    });
    await expect(client.query(`delete from ${where}`)).rejects.toMatchObject(noPair);
    await client.query(`alter table ${where} rename column id to renamed`);
    await expect(client.query(`delete from ${where}`)).rejects.toMatchObject({ code: "42703" });
  });
});
