// G5: which resource guards a row. Its name depends on the row as it is stored and on nothing else,
// equal keys have one name, and different keys have different ones.
import type pg from "pg";
import { fence, fencedTable, fenceOf, tableName, writeUnder } from "../support/own-table.js";
import { describe, expect, test } from "../support/store.js";

const cannotBeFenced = { code: "0A000" };
const noPair = { code: "PLS03" };

/** type, a value, and the name that the row has. The table of docs/own-tables.md. */
const canonical = [
  ["smallint", "'-7'", "-7"],
  ["integer", "'+7'", "7"],
  ["bigint", "'9007199254740993'", "9007199254740993"],
  ["numeric", "1.50", "1.5"],
  ["numeric(10,4)", "100", "100"],
  ["text", "'a b/ü%'", "a b/ü%"],
  ["varchar(9)", "'x'", "x"],
  ["char(5)", "'ab'", "ab"],
  ["uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
  ["boolean", "'yes'", "true"],
  ["date", "'2026-11-09'", "2026-11-09"],
  ["timestamp", "'2026-11-09 01:02:03.5'", "2026-11-09T01:02:03.5"],
  ["timestamptz", "'2026-11-09 01:02:03.5+02'", "2026-11-08T23:02:03.5+00:00"],
  ["bytea", "decode('01ff', 'hex')", String.raw`\x01ff`],
] as const;

const withoutCanonicalText = [
  "real",
  "double precision",
  "interval",
  "timetz",
  "json",
  "jsonb",
  "xml",
  "money",
  "point",
  "integer[]",
  "int4range",
  "tsvector",
];

const settings = [
  "set timezone = 'Europe/Berlin'; set datestyle = 'German'; set bytea_output = 'escape'; set intervalstyle = 'sql_standard'",
  "set timezone = 'America/New_York'; set datestyle = 'SQL, DMY'; set extra_float_digits = -15; set lc_numeric = 'C'; set lc_time = 'C'",
  "set standard_conforming_strings = off; set backslash_quote = on; set escape_string_warning = off; set array_nulls = off",
];

async function expectWriteUnderPairOnly(client: pg.Client, table: string, insert: string, name: string): Promise<void> {
  await writeUnder(client, [[name, 5]], `insert into ${table} ${insert}`);
  await expect(writeUnder(client, [[`${name} `, 5]], `delete from ${table}`)).rejects.toMatchObject(noPair);
  await expect(writeUnder(client, [[name, 4]], `delete from ${table}`)).rejects.toMatchObject({ code: "PLS01", detail: "5" });
  await writeUnder(client, [[name, 5]], `delete from ${table}`);
}

describe("the text of a key", () => {
  for (const [type, value, text] of canonical)
    test(`G5 a key of type ${type} has one text, whatever the session sets`, async ({ connect }) => {
      const table = await fencedTable(await connect(), `k ${type}, other jsonb`, "k");
      for (const texts of ["", ...settings]) {
        const client = await connect();
        await client.query(texts);
        await expectWriteUnderPairOnly(client, table, `values (${value}::${type}, '{}')`, `${table}/${text}`);
      }
    });

  test("G5 a session in another time zone cannot write a row of a newer holder", async ({ connect }) => {
    const [client, berlin] = [await connect(), await connect()];
    const table = await fencedTable(client, "at timestamptz primary key, amount integer", "at");
    await writeUnder(client, [[`${table}/2026-01-01T00:00:00+00:00`, 35]], `insert into ${table} values ('2026-01-01 00:00:00+00', 35)`);
    await berlin.query("set timezone = 'Europe/Berlin'");
    for (const local of ["2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00+00:00"])
      await expect(writeUnder(berlin, [[`${table}/${local}`, 34]], `update ${table} set amount = 34`)).rejects.toMatchObject({
        code: expect.stringMatching(/^PLS0[13]$/),
      });
    expect((await client.query(`select amount from ${table}`)).rows).toEqual([{ amount: 35 }]);
  });

  test("G5 equal numbers are one resource, whatever their scale", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "k numeric primary key, amount integer", "k");
    await writeUnder(client, [[`${table}/1`, 35]], `insert into ${table} values (1.0, 35)`);
    await writeUnder(client, [[`${table}/1`, 36]], `delete from ${table} where k = 1.0`);
    for (const key of ["1", "1.0", "1.000"])
      for (const name of [`${table}/1`, `${table}/${key}`])
        await expect(writeUnder(client, [[name, 34]], `insert into ${table} values (${key}, 34)`)).rejects.toMatchObject({
          code: expect.stringMatching(/^PLS0[13]$/),
        });
  });

  for (const type of withoutCanonicalText)
    test(`G5 a key of type ${type} is refused when the table is fenced`, async ({ connect }) => {
      const client = await connect();
      await expect(fencedTable(client, `k ${type}`, "k")).rejects.toMatchObject(cannotBeFenced);
    });

  test("G5 types of the user's own and collations under which unequal texts are equal are refused", async ({ connect }) => {
    const client = await connect();
    const suffix = tableName("own");
    await client.query(
      `create type mood_${suffix} as enum ('good'); create domain name_${suffix} as text; create type both_${suffix} as (a int)`,
    );
    await client.query(`create collation any_case_${suffix} (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`);
    for (const type of [`mood_${suffix}`, `name_${suffix}`, `both_${suffix}`, `text collate any_case_${suffix}`])
      await expect(fencedTable(client, `k ${type}`, "k")).rejects.toMatchObject(cannotBeFenced);
  });

  test("G5 a key whose type was changed afterwards is refused until the table is fenced again", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "k integer, amount integer", "k");
    await client.query(`alter table ${table} alter column k type double precision`);
    await expect(writeUnder(client, [[`${table}/1`, 5]], `insert into ${table} values (1)`)).rejects.toMatchObject({ code: "PLS06" });
    await client.query(`alter table ${table} alter column k type bigint`);
    await fence(client, table, ["k"]);
    await writeUnder(client, [[`${table}/1`, 5]], `insert into ${table} values (1)`);
  });

  test("G5 columns of a key are joined so that different keys have different names", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "a text, b text, amount integer", "a", "b");
    await writeUnder(client, [[`${table}/t1%2Fx/y`, 35]], `insert into ${table} values ('t1/x', 'y', 35)`);
    await writeUnder(client, [[`${table}/t1/x%2Fy`, 3]], `insert into ${table} values ('t1', 'x/y', 3)`);
    await writeUnder(client, [[`${table}/t1%252Fx/y`, 4]], `insert into ${table} values ('t1%2Fx', 'y', 4)`);
    await writeUnder(client, [[`${table}/plain/y`, 5]], `insert into ${table} values ('plain', 'y', 5)`);
    expect(await fenceOf(client, `${table}/t1/x/y`)).toBeNull();
    await expect(writeUnder(client, [[`${table}/t1/x%2Fy`, 3]], `update ${table} set amount = 3 where a = 't1/x'`)).rejects.toMatchObject(
      noPair,
    );
    await expect(writeUnder(client, [[`${table}/t1/x/y`, 36]], `update ${table} set amount = 3 where a = 't1/x'`)).rejects.toMatchObject(
      noPair,
    );
  });

  test("G5 a key without a value, or too long to be a resource, is refused", async ({ connect }) => {
    const client = await connect();
    const table = await fencedTable(client, "k text", "k");
    await expect(writeUnder(client, [[`${table}/`, 5]], `insert into ${table} values (null)`)).rejects.toMatchObject(noPair);
    await expect(writeUnder(client, [], `insert into ${table} values (repeat('x', 600))`)).rejects.toMatchObject(noPair);
    await writeUnder(client, [[`${table}/`, 5]], `insert into ${table} values ('')`);
  });

  test("G5 identifiers and prefixes with quotes, backslashes and percent signs are taken literally", async ({ connect }) => {
    const client = await connect();
    const table = `"${tableName("odd")} ""x"" %s \\ '"`;
    await client.query(`create table ${table} ("the ""key"" %I '\\" integer, amount integer)`);
    await client.query("select palisade.fence_table($1, $2, $3)", [table, "it's \\ %L/", `the "key" %I '\\`]);
    await client.query("set standard_conforming_strings = off; set escape_string_warning = off");
    await writeUnder(
      client,
      [["it's \\ %L/7", 5]].map(([, token]) => ["it's \\ %L/7", Number(token)] as const),
      `insert into ${table} values (7, 0)`,
    );
    await expect(client.query(`insert into ${table} values (8, 0)`)).rejects.toMatchObject(noPair);
  });
});
