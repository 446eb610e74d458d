// G5: no row of a fenced table changes past the fence: which resource guards it depends on the row
// as it is stored and on nothing else, and neither other triggers, nor its partitions, its children
// or the keys that refer to it lead around it.
import type pg from "pg";
import { type Connect, describe, expect, test } from "../support/fixtures.js";
import { fence, fencedTable, fenceOf, inTransaction, tableName, writeUnder } from "../support/sql.js";

const noPair = { code: "PLS03" };
const truncated = { code: "PLS04" };
const partNotFenced = { code: "PLS06" };
const cannotBeFenced = { code: "0A000" };

/** type, a value, and the name that the row has. The table of docs/own-tables.md. */
const canonical = [
  ["smallint", "'-7'", "-7"],
  ["integer", "'+7'", "7"],
  ["bigint", "'9007199254740993'", "9007199254740993"],
  ["numeric", "1.50", "1.5"],
  ["numeric(10,4)", "100", "100"],
  ["text", "'a b/ü%'", "a b/ü%"],
  ["varchar(9)", "'x'", "x"],
  ['text collate "und-x-icu"', "'a B'", "a B"],
  ["char(5)", "'ab'", "ab"],
  ["uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
  ["boolean", "'yes'", "true"],
  ["date", "'2026-11-09'", "2026-11-09"],
  ["timestamp", "'2026-11-09 01:02:03.5'", "2026-11-09T01:02:03.5"],
  ["timestamptz", "'2026-11-09 01:02:03.5+02'", "2026-11-08T23:02:03.5+00:00"],
  ["bytea", "decode('01ff', 'hex')", String.raw`\x01ff`],
] as const;

const withoutCanonicalText = "real|double precision|interval|timetz|json|jsonb|xml|money|point|integer[]|int4range|tsvector".split("|");

const settings = [
  "set timezone = 'Europe/Berlin'; set datestyle = 'German'; set bytea_output = 'escape'; set intervalstyle = 'sql_standard'",
  "set timezone = 'America/New_York'; set datestyle = 'SQL, DMY'; set extra_float_digits = -15; set lc_numeric = 'C'; set lc_time = 'C'",
  "set standard_conforming_strings = off; set backslash_quote = on; set escape_string_warning = off; set array_nulls = off",
];

describe("the text of a key", () => {
  test("G5 is one for each value of its type, whatever the session sets", async ({ connect }) => {
    const owner = await connect();
    const sessions = await Promise.all(
      ["", ...settings].map(async (texts) => {
        const client = await connect();
        await client.query(texts);
        return client;
      }),
    );
    for (const [type, value, text] of canonical) {
      const table = await fencedTable(owner, `k ${type}, other jsonb`, "k");
      const name = `${table}/${text}`;
      for (const client of sessions) {
        await writeUnder(client, [[name, 5]], `insert into ${table} values (${value}::${type}, '{}')`);
        await expect(writeUnder(client, [[`${name} `, 5]], `delete from ${table}`), type).rejects.toMatchObject(noPair);
        await expect(writeUnder(client, [[name, 4]], `delete from ${table}`), type).rejects.toMatchObject({ code: "PLS01", detail: "5" });
        await writeUnder(client, [[name, 5]], `delete from ${table}`);
      }
    }
  });

  test("G5 of a type whose text depends on settings, or of a collation that equates texts, is refused", async ({ connect }) => {
    const client = await connect();
    const own = tableName("own");
    await client.query(`create type mood_${own} as enum ('good'); create domain name_${own} as text; create type both_${own} as (a int)`);
    await client.query(`create collation any_case_${own} (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
    for (const type of [...withoutCanonicalText, `mood_${own}`, `name_${own}`, `both_${own}`, `text collate any_case_${own}`])
      await expect(fencedTable(client, `k ${type}`, "k"), type).rejects.toMatchObject(cannotBeFenced);
  });

  test("G5 has the type that the column had when its table was fenced: it is changed only where the fence is taken away", async ({
    connect,
  }) => {
    const client = await connect();
    const table = await fencedTable(client, "k integer, amount integer", "k");
    const change = `alter table ${table} alter column k type numeric`;
    await expect(client.query(change)).rejects.toMatchObject({ code: "0A000" });
    await client.query(
      `begin; select palisade.unfence_table('${table}'); ${change}; select palisade.fence_table('${table}', '${table}/', 'k'); commit`,
    );
    await writeUnder(client, [[`${table}/1.5`, 5]], `insert into ${table} values (1.50)`);
  });

  test("G5 joins several columns so that different keys have different names", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, 'a text collate "und-x-icu", b text collate "POSIX", amount integer', "a", "b");
    for (const [name, token, values] of [
      ["t1%2Fx/y", 35, "'t1/x', 'y', 35"],
      ["t1/x%2Fy", 3, "'t1', 'x/y', 3"],
      ["t1%252Fx/y", 4, "'t1%2Fx', 'y', 4"],
      ["plain/y", 5, "'plain', 'y', 5"],
    ] as const)
      await writeUnder(client, [[`${table}/${name}`, token]], `insert into ${table} values (${values})`);
    expect(await fenceOf(client, `${table}/t1/x/y`)).toBeNull();
    for (const name of ["t1/x%2Fy", "t1/x/y"]) {
      const write = writeUnder(client, [[`${table}/${name}`, 36]], `update ${table} set amount = 3 where a = 't1/x'`);
      await expect(write).rejects.toMatchObject(noPair);
    }
  });

  test("G5 without a value, or too long to be a resource, is refused", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "k text", "k");
    await expect(writeUnder(client, [[`${table}/`, 5]], `insert into ${table} values (null)`)).rejects.toMatchObject(noPair);
    await expect(writeUnder(client, [], `insert into ${table} values (repeat('x', 600))`)).rejects.toMatchObject(noPair);
    await writeUnder(client, [[`${table}/`, 5]], `insert into ${table} values ('')`);
  });

  test("G5 takes quotes, backslashes and percent signs of identifiers and prefixes literally", async ({ connect }) => {
    const client = await connect();
    const table = `"${tableName("odd")} ""x"" %s \\ '"`;
    await client.query(`create table ${table} ("the ""key"" %I '\\" integer, amount integer)`);
    await client.query("select palisade.fence_table($1, $2, $3)", [table, "it's \\ %L/", `the "key" %I '\\`]);
    await client.query("set standard_conforming_strings = off; set escape_string_warning = off");
    await writeUnder(client, [["it's \\ %L/7", 5]], `insert into ${table} values (7, 0)`);
    await expect(client.query(`insert into ${table} values (8, 0)`)).rejects.toMatchObject(noPair);
  });
});

describe("what else changes a row", () => {
  test("G5 a key that a later trigger changes is guarded as it is stored", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "id integer, amount integer", "id");
    await client.query(`create function ${table}_move() returns trigger language plpgsql as $$ begin new.id := 2; return new; end $$`);
    await client.query(`create trigger zzz_last before insert or update on ${table} for each row execute function ${table}_move()`);
    await expect(writeUnder(client, [[`${table}/1`, 34]], `insert into ${table} values (1, 34)`)).rejects.toMatchObject(noPair);
    await writeUnder(client, [[`${table}/2`, 35]], `insert into ${table} values (1, 35)`);
    expect((await client.query(`select * from ${table}`)).rows).toEqual([{ id: 2, amount: 35 }]);
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
      `update ${table} set amount = 9 returning palisade.guard('${table}/1', 5)`,
    ])
      await expect(writeUnder(client, [[`${table}/3`, 9]], text), text).rejects.toMatchObject(noPair);
    expect((await client.query(`select * from ${table}`)).rows).toEqual([{ id: 1, amount: 0 }]);
  });

  test.for(["on delete cascade", "on delete set null", "on update cascade"])(
    "G5 a foreign key with %s needs the pair of the fenced row",
    async (action, { connect }) => {
      const client = await connect();
      const parent = tableName("parent");
      await client.query(`create table ${parent} (id integer primary key); insert into ${parent} values (1)`);
      const key = action === "on update cascade" ? "parent" : "id";
      const table = await fencedTable(client, `id integer, parent integer references ${parent} ${action}`, key);
      const [one, two] = [[`${table}/1`, 5] as const, [`${table}/2`, 5] as const];
      await writeUnder(client, [one], `insert into ${table} values (1, 1)`);
      await expect(client.query(`truncate ${parent} cascade`)).rejects.toMatchObject(truncated);
      const change = action.startsWith("on update") ? `update ${parent} set id = 2` : `delete from ${parent}`;
      await expect(client.query(change)).rejects.toMatchObject(noPair);
      await writeUnder(client, [one, two], change);
    },
  );
});

async function partitioned(connect: Connect) {
  const client = await connect();
  const table = tableName("parts");
  await client.query(`create table ${table} (id integer, amount integer, primary key (id)) partition by range (id)`);
  await client.query(`create table ${table}_a partition of ${table} for values from (0) to (10)`);
  await client.query(`create table ${table}_b partition of ${table} for values from (10) to (20) partition by range (id)`);
  await client.query(`create table ${table}_b1 partition of ${table}_b for values from (10) to (20)`);
  await fence(client, table, ["id"]);
  const under = (ids: readonly number[], text: string) =>
    writeUnder(
      client,
      ids.map((id) => [`${table}/${id}`, 5] as const),
      text,
    );
  await under([1, 11], `insert into ${table} values (1, 0), (11, 0)`);
  return { client, table, under };
}

async function expectGuarded(client: pg.Client, table: string): Promise<void> {
  await expect(client.query(`truncate ${table}`), table).rejects.toMatchObject(truncated);
  await expect(client.query(`update ${table} set amount = 1`), table).rejects.toMatchObject(noPair);
  await expect(client.query(`delete from ${table}`), table).rejects.toMatchObject(noPair);
}

describe("a partitioned table", () => {
  test("G5 is guarded through each of its partitions, for writes and for truncate", async ({ connect }) => {
    const { client, table, under } = await partitioned(connect);
    for (const part of [table, `${table}_a`, `${table}_b`, `${table}_b1`]) {
      await expectGuarded(client, part);
      await under([1, 11], `update ${part} set amount = amount + 1`);
    }
    await expect(client.query(`insert into ${table}_a values (2, 0)`)).rejects.toMatchObject(noPair);
  });

  test("G5 a row that moves to another partition is guarded under both names", async ({ connect }) => {
    const { table, under } = await partitioned(connect);
    const move = `update ${table} set id = 12 where id = 1`;
    for (const ids of [[1], [12], []]) await expect(under(ids, move)).rejects.toMatchObject(noPair);
    await under([1, 12], move);
  });

  test("G5 a partition that was made or attached later must be fenced before it is written", async ({ connect }) => {
    const { client, table, under } = await partitioned(connect);
    await client.query(`create table ${table}_c partition of ${table} for values from (20) to (30)`);
    await client.query(`create table ${table}_d (id integer primary key, amount integer); insert into ${table}_d values (31, 0)`);
    await client.query(`alter table ${table} attach partition ${table}_d for values from (30) to (40)`);
    const refused = { ...partNotFenced, hint: expect.stringContaining("palisade.fence_table") };
    for (const text of [`insert into ${table} values (21, 0)`, `update ${table} set amount = 1`, `delete from ${table}_d`])
      await expect(under([1, 11, 21, 31], text), text).rejects.toMatchObject(refused);
    await under([1], `update ${table} set amount = 1 where id = 1`);
    await fence(client, table, ["id"]);
    await under([21, 31], `insert into ${table} values (21, 0); update ${table}_d set amount = 1`);
    for (const part of ["c", "d"]) await expectGuarded(client, `${table}_${part}`);
  });
});

test("G5 a table with children is guarded through each, and one made later must be fenced first", async ({ connect }) => {
  const client = await connect();
  const table = tableName("family");
  await client.query(`create table ${table} (id integer, amount integer); create table ${table}_child () inherits (${table})`);
  await client.query(`create table ${table}_grandchild (more text) inherits (${table}_child)`);
  await client.query(`insert into ${table}_child values (1, 0); insert into ${table}_grandchild values (2, 0)`);
  await fence(client, table, ["id"]);
  for (const part of [table, `${table}_child`, `${table}_grandchild`]) await expectGuarded(client, part);
  const pairs = [[`${table}/1`, 5] as const, [`${table}/2`, 6] as const];
  await writeUnder(client, pairs, `update ${table} set amount = 1`);
  await client.query(`create table ${table}_late () inherits (${table}_child); insert into ${table}_late values (3, 0)`);
  for (const part of [table, `${table}_child`])
    await expect(client.query(`update ${part} set amount = 9`)).rejects.toMatchObject(partNotFenced);
  await fence(client, table, ["id"]);
  for (const part of [table, `${table}_late`]) await expectGuarded(client, part);
});

describe("fencing a table", () => {
  test("may be done again with another key, and needs a key of columns that exist, each once", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "id integer, other integer", "id");
    await fence(client, table, ["other"]);
    await writeUnder(client, [[`${table}/2`, 5]], `insert into ${table} values (1, 2)`);
    for (const key of [[], ["id", "id"]]) await expect(fence(client, table, key)).rejects.toMatchObject({ code: "22023" });
    for (const key of ["nonsense", "ctid"]) await expect(fence(client, table, [key])).rejects.toMatchObject({ code: "42703" });
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
    const { rows } = await client.query("select from pg_trigger where tgrelid::regclass::text like $1 and not tgisinternal", [`${table}%`]);
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
  });

  test("G5 of a key whose column is renamed goes on by the same values", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "a integer, b integer", "a", "b");
    await client.query(`alter table ${table} rename column b to renamed; alter table ${table} rename column a to b`);
    await expect(writeUnder(client, [[`${table}/2/1`, 5]], `insert into ${table} values (1, 2)`)).rejects.toMatchObject(noPair);
    await writeUnder(client, [[`${table}/1/2`, 5]], `insert into ${table} values (1, 2)`);
  });

  test("G5 leaves nothing behind when its table is dropped, and is made by what a dump says of the triggers", async ({ connect }) => {
    const client = await connect();
    const columns = "id integer, day date, amount integer";
    const table = await fencedTable(client, columns, "id", "day");
    const { rows: dumped } = await client.query<{ text: string }>(
      "select pg_get_triggerdef(oid) as text from pg_trigger where tgrelid = $1::regclass",
      [table],
    );
    await client.query(`drop table ${table}`);
    const left = await client.query("select proname from pg_proc where proname like $1", [`%${table}`]);
    expect(left.rows).toEqual([]);
    await client.query(`create table ${table} (${columns}); ${dumped.map(({ text }) => text).join("; ")}`);
    const insert = `insert into ${table} values (1, '2026-11-09', 0)`;
    await expect(client.query(insert)).rejects.toMatchObject(noPair);
    await writeUnder(client, [[`${table}/1/2026-11-09`, 5]], insert);
    await expectGuarded(client, table);
  });
});
