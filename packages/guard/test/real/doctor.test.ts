// What is fenced, taking a fence away, and the doctor: each way around a fence is made, shown to
// let a stale write pass where it does, and found by name.
import { connectTo, type TestDatabase } from "@palisade/testkit";
import type pg from "pg";
import { type Connect, describe, expect, test } from "../../../gateway/test/support/fixtures.js";
import { fencedTable, tableName, writeUnder } from "../../../gateway/test/support/sql.js";
import { inspectFences } from "../../src/doctor.js";
import { fencedTables, unfence } from "../../src/fenced-tables.js";

async function table(connect: Connect): Promise<{ readonly client: pg.Client; readonly name: string }> {
  const client = await connect();
  const name = await fencedTable(client, "id integer primary key, amount integer not null", "id");
  await writeUnder(client, [[`${name}/1`, 35]], `insert into ${name} values (1, 35)`);
  return { client, name };
}

/** The ways found for this table, by name. */
async function waysOf(client: pg.Client, name: string, kind = "open"): Promise<string[]> {
  const findings = await inspectFences(client);
  return findings.filter((finding) => finding.kind === kind && finding.table === name).map(({ way }) => way);
}

async function details(client: pg.Client, way: string): Promise<string> {
  return (await inspectFences(client))
    .filter((finding) => finding.way === way)
    .map(({ kind, detail }) => `${kind}: ${detail}`)
    .join("\n");
}

/** Roles belong to the whole server, so each has a name of its own and ends with its test. */
async function withRole<T>(client: pg.Client, attributes: string, work: (role: string) => Promise<T>): Promise<T> {
  const role = tableName("role");
  await client.query(`create role ${role} ${attributes}`);
  try {
    return await work(role);
  } finally {
    await client.query(`drop owned by ${role}; drop role ${role}`);
  }
}

function urlOf({ url }: TestDatabase, role: string): string {
  const own = new URL(url);
  own.username = role;
  return own.href;
}

describe("what is fenced", () => {
  test("is listed with its prefix and key, until the fence is taken away; its fences stay", async ({ connect }) => {
    const { client, name } = await table(connect);
    expect((await fencedTables(client)).filter((fenced) => fenced.table === name)).toEqual([
      { table: name, prefix: `${name}/`, keyColumns: ["id"], enabled: true },
    ]);
    await unfence(client, name);
    expect((await fencedTables(client)).filter((fenced) => fenced.table === name)).toEqual([]);
    await client.query(`update ${name} set amount = 0`);
    await client.query("select palisade.fence_table($1, $2, 'id')", [name, `${name}/`]);
    await expect(writeUnder(client, [[`${name}/1`, 34]], `update ${name} set amount = 34`)).rejects.toMatchObject({ code: "PLS01" });
    await expect(unfence(client, "no_such_table")).rejects.toMatchObject({ code: "42P01" });
    await expect(unfence(client, "")).rejects.toThrow(RangeError);
  });
});

describe("the doctor", () => {
  test("finds nothing open on a table that is fenced, and asks no right beyond palisade_app", async ({ connect, database }) => {
    const { client, name } = await table(connect);
    expect(await waysOf(client, name)).toEqual([]);
    await withRole(client, "login", async (role) => {
      // As grants.sql gives them to palisade_app.
      await client.query(`grant usage on schema palisade to ${role}; grant select on palisade.fenced_tables to ${role}`);
      await using app = await connectTo(urlOf(database, role));
      expect((await inspectFences(app)).map(({ way }) => way)).toEqual(expect.arrayContaining(["owner", "superuser"]));
    });
  });

  const replaced =
    "create or replace trigger palisade_guard_update after update on T for each row when (false) execute function palisade.refuse_write('T/', 'id')";
  test.for<readonly [string, string, string, string?]>([
    ["a trigger that is disabled", "alter table T disable trigger palisade_guard_update; update T set amount = 34", "trigger_disabled"],
    [
      "one for replication only",
      "alter table T enable replica trigger palisade_guard_update; update T set amount = 34",
      "trigger_disabled",
    ],
    ["a trigger that was replaced", `${replaced}; update T set amount = 34`, "trigger_changed"],
    ["a trigger that was dropped", "drop trigger palisade_guard_update on T; update T set amount = 34", "part_not_fenced"],
    ["a key that was renamed", "alter table T rename column id to number", "trigger_changed"],
    ["a key that was dropped", "alter table T drop column id cascade; update T set amount = 34", "part_not_fenced"],
    ["a child that came after the fence", "create table T_c () inherits (T); insert into T_c values (7, 7)", "part_not_fenced", "_c"],
  ])("G5 names %s", async ([, texts, way, part = ""], { connect }) => {
    const { client, name } = await table(connect);
    await client.query(texts.replaceAll(/\bT(?=\b|_)/g, name));
    expect(await waysOf(client, name + part)).toEqual([way]);
    if (way !== "trigger_disabled") return;
    await client.query(`alter table ${name} enable always trigger palisade_guard_update`);
    await expect(client.query(`update ${name} set amount = 32`)).rejects.toMatchObject({ code: "PLS03" });
    expect(await waysOf(client, name)).toEqual([]);
  });

  test("finds nothing to say of a key of any type, of several columns, nor of partitions", async ({ connect }) => {
    const client = await connect();
    const types = "smallint integer bigint numeric text varchar char(5) uuid boolean date time timestamp timestamptz bytea".split(" ");
    const columns = types.map((type, at) => `"Column ""${at}"" \\'" ${type}`).join(", ");
    const name = tableName("every");
    await client.query(
      `create table ${name} (${columns}) partition by list ("Column ""0"" \\'"); create table ${name}_1 partition of ${name} default`,
    );
    const key = types.map((_, at) => `Column "${at}" \\'`);
    await client.query("select palisade.fence_table($1, $2, variadic $3)", [name, "(it's \\ ::text)/", key]);
    await client.query("set search_path = palisade, public; set standard_conforming_strings = off; set escape_string_warning = off");
    for (const part of [name, `${name}_1`]) expect(await waysOf(client, part)).toEqual([]);
  });

  test("G5 names partitions that came after the fence, until it is made again", async ({ connect }) => {
    const client = await connect();
    const parent = tableName("parted");
    const fence = () => client.query("select palisade.fence_table($1, $2, 'id')", [parent, `${parent}/`]);
    await client.query(`create table ${parent} (id integer, amount integer) partition by list (id)`);
    await fence();
    await client.query(`create table ${parent}_1 partition of ${parent} for values in (1); truncate ${parent}_1`);
    expect(await waysOf(client, `${parent}_1`)).toEqual(["part_not_fenced"]);
    await fence();
    expect(await waysOf(client, `${parent}_1`)).toEqual([]);
  });

  test("G5 names who switched triggers off: a session, a preset, a function, a right", async ({ connect }) => {
    const { client, name } = await table(connect);
    await client.query("set session_replication_role = replica");
    await client.query(`update ${name} set amount = 34`);
    expect(await details(client, "session_replication_role")).toContain("open: it is replica in this session");
    await client.query("reset session_replication_role");
    await client.query(`create function ${name}_past() returns void language sql set session_replication_role = replica as 'select'`);
    await withRole(client, "login", async (role) => {
      await client.query(
        `alter role ${role} set session_replication_role = Replica; grant set on parameter session_replication_role to ${role}`,
      );
      const found = await details(client, "session_replication_role");
      expect(found).toContain(`open: it is preset to replica for role ${role}: no trigger fires`);
      expect(found).toContain(`open: the function ${name}_past() sets it to replica`);
      expect(found).toMatch(new RegExp(`privileged: may switch triggers off for their session: .*${role}`));
    });
    await client.query(`drop function ${name}_past()`);
    expect(await details(client, "session_replication_role")).not.toContain(name);
  });

  test("names owners, their members, superusers, BYPASSRLS, and roles that may write the fences", async ({ connect }) => {
    const { client, name } = await table(connect);
    const [owner, member, past, root] = ["owner", "member", "past", "root"].map((role) => tableName(role)) as [
      string,
      string,
      string,
      string,
    ];
    await client.query(`create role ${owner} nologin; create role ${member} login in role ${owner}; create role ${past} login bypassrls;
      create role ${root} login superuser; alter table ${name} owner to ${owner}; grant delete on palisade.resources to ${past}`);
    try {
      const found = await inspectFences(client);
      expect(found.find(({ way, table: of }) => way === "owner" && of === name)?.detail).toBe(
        `${owner} owns it and may disable its triggers; so may: ${member}`,
      );
      expect(await details(client, "superuser")).toContain(root);
      expect(await details(client, "bypassrls")).toContain(past);
      expect(await details(client, "fences_writable")).toContain(past);
    } finally {
      await client.query(
        `alter table ${name} owner to current_user; drop owned by ${past}; drop role ${root}, ${past}, ${member}, ${owner}`,
      );
    }
  });

  test("G5 notes a foreign key that cascades: the fence holds, and its pairs are needed", async ({ connect }) => {
    const client = await connect();
    const parent = tableName("parent");
    await client.query(`create table ${parent} (id integer primary key)`);
    const child = await fencedTable(client, `id integer primary key, parent integer references ${parent} on delete cascade`, "id");
    await client.query(`insert into ${parent} values (1)`);
    await writeUnder(client, [[`${child}/7`, 35]], `insert into ${child} values (7, 1)`);
    expect(await waysOf(client, child, "note")).toEqual(["cascade"]);
    await expect(client.query(`delete from ${parent}`)).rejects.toMatchObject({ code: "PLS03" });
    await expect(writeUnder(client, [[`${child}/7`, 34]], `delete from ${parent}`)).rejects.toMatchObject({ code: "PLS01" });
    await writeUnder(client, [[`${child}/7`, 35]], `delete from ${parent}`);
    expect((await client.query(`select from ${child}`)).rowCount).toBe(0);
  });
});
