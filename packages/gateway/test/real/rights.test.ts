// Who may do what to a fence, and what the SQL files make. Nothing that a caller brings along runs
// with the rights of the owner of the fences, and neither role can lower a fence past the record.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { grantRoles, MigrationError, migrate } from "@palisade/guard/schema";
import { connectTo, PostgresServer, queryAt } from "@palisade/testkit";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import type pg from "pg";
import { openStore } from "../../src/fenced-store.js";
import { history, resources } from "../../src/store/reads.js";
import { test as base, createGateway, describe, expect, quiet } from "../support/fixtures.js";
import { writeUnder } from "../support/sql.js";

/** Migrated by a superuser, as docker-compose.yml does; the other two log in with the roles of palisade. */
interface Roles {
  readonly owner: pg.Client;
  readonly app: pg.Client;
  readonly gateway: pg.Client;
  readonly gatewayUrl: string;
}

const test = base
  // Roles belong to a whole server.
  .extend("server", { scope: "file" }, async ({ postgres: _shared }, { onCleanup }): Promise<PostgresServer> => {
    const server = await PostgresServer.start();
    onCleanup(() => server.stop());
    return server;
  })
  .extend("roles", async ({ server, connect }): Promise<Roles> => {
    const { url } = await server.createDatabase();
    const as = (username: string): string => Object.assign(new URL(url), { username }).href;
    await migrate(url);
    await grantRoles(url);
    const owner = await connect(url);
    await owner.query(`do $$ begin
      create role gateway login in role palisade_gateway; create role app login in role palisade_app;
    exception when duplicate_object then null; end $$`);
    await owner.query("create schema app authorization app");
    return { owner, app: await connect(as("app")), gateway: await connect(as("gateway")), gatewayUrl: as("gateway") };
  });

async function expectRefused(client: pg.Client, code: string, ...texts: readonly string[]): Promise<void> {
  for (const text of texts) await expect(client.query(text), text).rejects.toMatchObject({ code });
}

/** Writes down as whom it ran, when a value of the type becomes text or JSON. */
function bait(type: string): string {
  const [scheme] = type.split(".");
  return [
    `create table if not exists app.ran_as (who text); grant insert on app.ran_as to public; grant usage on schema app to public`,
    `create type ${type} as (a integer)`,
    ...["json", "jsonb", "text"].flatMap((to) => [
      `create function ${scheme}.to_${to}(${type}) returns ${to} language plpgsql as
         'begin insert into app.ran_as values (current_user); return ''"1"''; end'`,
      `create cast (${type} as ${to}) with function ${scheme}.to_${to}(${type}) as implicit`,
    ]),
  ].join(";\n");
}

describe("nothing of the caller's runs as the owner of the fences", () => {
  test("G5 not a cast of its own, on a temporary table or on one of its own", async ({ roles: { app, owner } }) => {
    const attempts: string[] = [];
    for (const [name, make, type] of [
      ["mine", "create temporary table mine (id integer, b pg_temp.bait)", "pg_temp.bait"],
      ["app.mine", "create table app.mine (id integer, b app.bait)", "app.bait"],
    ] as const) {
      await app.query(bait(type));
      await app.query(make);
      for (const text of [
        `select palisade.fence_table('${name}', 'x/', 'id')`,
        `select palisade.fence_table('${name}', 'y/', 'b')`,
        ...["palisade.guard('x/1', 5)", "palisade.present(5)"].flatMap((call) => [
          `begin; select ${call}`,
          `insert into ${name} values (1, row(1)); commit`,
          "rollback",
        ]),
      ])
        await app.query(text).catch((error: Error) => attempts.push(error.message));
    }
    expect((await owner.query("select distinct who from app.ran_as where who <> 'app'")).rows).toEqual([]);
    expect(attempts.join("\n")).toMatch(/temporary/);
    expect((await app.query("select count(*)::int as n from app.mine")).rows).toEqual([{ n: 1 }]);
  });

  test("G5 every function pins its search path; those with the owner's rights take plain values, and not from public", async ({
    connect,
  }) => {
    const client = await connect();
    const { rows: functions } = await client.query<{ name: string; pinned: boolean; definer: boolean; open: boolean }>(
      `select proname || '(' || pg_get_function_identity_arguments(oid) || ')' as name, prosecdef as definer,
         coalesce('search_path=pg_catalog, pg_temp' = any (proconfig), false) as pinned, has_function_privilege('public', oid, 'execute') as open
       from pg_proc where pronamespace = 'palisade'::regnamespace order by 1`,
    );
    expect(functions.filter(({ pinned }) => !pinned)).toEqual([]);
    const definers = functions.filter(({ definer }) => definer);
    expect(definers.map(({ name }) => name)).toEqual([
      "beat(at_least bigint)",
      "fence_of(resource text)",
      "forget_history(older_than interval, at_most integer)",
      "guard(resource text, token bigint, seq bigint, holder text)",
      "holds_pair(resource text)",
      "move_fence(direction text, resource text, token bigint, changed_by text, reason text)",
    ]);
    expect(definers.filter(({ open }) => open)).toEqual([]);
  });

  test("G5 not a function of a user who may create in public, when the gateway or an operator works", async ({ roles, openStore }) => {
    const { owner, app, gateway, gatewayUrl } = roles;
    await owner.query("grant create on schema public to app");
    await app.query(`create table app.ran_as (who text); grant insert on app.ran_as to public; grant usage on schema app to public`);
    const row = "text, bigint, text, bigint, text, boolean, text, boolean, text";
    for (const [name, parameters, returns] of [
      ["jsonb_build_object", row, "jsonb"],
      ["jsonb_build_object", `${row}, text`, "jsonb"],
      ["jsonb_build_object", "text, jsonb", "jsonb"],
      ["cardinality", "text[]", "integer"],
      ["unnest", "text[]", "setof text"],
      ["make_interval", "secs double precision", "interval"],
      ["pg_has_role", "text, text", "boolean"],
      ["has_table_privilege", "regclass, text", "boolean"],
    ] as const)
      await app.query(`create function public.${name}(${parameters}) returns ${returns} language plpgsql as
        'begin insert into app.ran_as values (current_user); raise exception ''hijacked''; end'`);
    const store = await openStore({ databaseUrl: gatewayUrl, history: "on" });
    expect(await store.write({ op: "put", resource: "r", token: 50, value: "{}" })).toMatchObject({ kind: "accepted" });
    const patch = { op: "patch", resource: "r", token: 50, value: '{"a":1}' } as const;
    expect(await store.transaction({ operations: [patch, { op: "seal", resource: "s", token: 1 }] })).toMatchObject({ kind: "committed" });
    expect(await store.raiseFence({ resource: "r", token: 51, by: "me", reason: "why" })).toMatchObject({ kind: "changed" });
    expect(await store.read("r")).toMatchObject({ token: 51 });
    expect(await store.ready()).toMatchObject({ ready: true });
    await gateway.query("select palisade.forget_history('1 day', 10), palisade.move_fence('raise', 's', 2, 'me', 'why')");
    expect((await owner.query("select * from app.ran_as")).rows).toEqual([]);
  });
});

const names = ["fence_changes", "history", "lineage", "migrations", "recoveries", "resources"];

describe("the gateway's role", () => {
  test("G1 can do all that a gateway does, and can neither delete nor truncate", async ({ roles: { gateway, gatewayUrl }, openStore }) => {
    expect(await migrate(gatewayUrl)).toMatchObject({ applied: [] });
    const store = await openStore({ databaseUrl: gatewayUrl, history: "on" });
    const numbered = { op: "put", resource: "r", token: 1, seq: 1, value: "{}" } as const;
    expect(await store.write(numbered)).toMatchObject({ kind: "accepted" });
    expect(await store.write(numbered)).toMatchObject({ kind: "sequence_out_of_order", currentSeq: 1 });
    expect(await store.write({ op: "patch", resource: "r", token: 1, value: "{}" })).toMatchObject({ kind: "accepted" });
    expect(await store.transaction({ operations: [{ op: "delete", resource: "r", token: 1 }] })).toMatchObject({ kind: "committed" });
    expect(await store.raiseFence({ resource: "r", token: 9, by: "me", reason: "why" })).toMatchObject({ kind: "changed" });
    expect(await store.history({ resource: "r", limit: 9 })).toMatchObject({ entries: [{}, {}, {}] });
    expect((await store.ready()).checks).toContainEqual({ name: "rights", status: "ok", detail: "this role cannot delete fences" });
    await gateway.query("select palisade.forget_history('1 day', 10)");
    for (const verb of ["delete from", "truncate", "drop table"])
      await expectRefused(gateway, "42501", ...names.map((name) => `${verb} palisade.${name}`));
  });

  test("G1 cannot lower, rename or forge a fence, and moves one by hand only on record", async ({ roles: { gateway, owner } }) => {
    const insert = "insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at) values";
    await gateway.query(`${insert} ('r', 50, 5, 7, 1, 'put', true, now())`);
    for (const change of ["token = 1", "token = 49", "seq = 4", "rev = 6"])
      await expectRefused(gateway, "PLS07", `update palisade.resources set ${change}`);
    const upsert = `${insert} ('r', 1, 0, 8, 1, 'put', true, now()) on conflict (resource) do update set token = excluded.token`;
    await expectRefused(gateway, "PLS07", upsert);
    await expectRefused(
      gateway,
      "42501",
      "update palisade.resources set resource = 'elsewhere'",
      "update palisade.resources set guarded_by = pg_current_xact_id()",
      "insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at, guarded_by) values ('s', 1, 0, 0, 0, 'seal', true, now(), '1')",
      "insert into palisade.fence_changes (resource, token, changed_by, reason) values ('r', 1, 'me', 'why')",
      "alter table palisade.resources disable trigger all",
      "drop trigger fence_only_rises on palisade.resources",
    );
    await gateway.query("update palisade.resources set token = 51, seq = 0");
    await gateway.query("select palisade.move_fence('lower', 'r', 3, 'me', 'why')");
    const { rows } = await owner.query("select token, previous_token, changed_by from palisade.fence_changes");
    expect(rows).toEqual([{ token: "3", previous_token: "51", changed_by: "me" }]);
    await gateway.query("update palisade.resources set token = 51");
    await expectRefused(gateway, "PLS07", ...[2, 3].map((token) => `update palisade.resources set token = ${token}`));
  });

  test("G1 not even the owner lowers a fence past the record", async ({ connect }) => {
    const client = await connect();
    await client.query("select palisade.guard('owned', 50)");
    await expectRefused(client, "PLS07", "update palisade.resources set token = 49 where resource = 'owned'");
    await client.query("select palisade.move_fence('lower', 'owned', 40, 'me', 'why')");
    await expectRefused(client, "PLS07", "update palisade.resources set token = 39 where resource = 'owned'");
  });
});

describe("an application's role", () => {
  test("G4 can raise a fence, but not so far that no token the lock will issue could pass it", async ({ roles: { app, owner } }) => {
    const tooFar = { code: "PLS03", message: expect.stringContaining("before the year 2100") };
    for (const token of ["999999999999999", "500000000000000"])
      for (const call of ["guard('poisoned', $1)", "present('poisoned', $1)", "guard_all('{poisoned}', array[$1::bigint])"])
        await expect(app.query(`select palisade.${call}`, [token]), call).rejects.toMatchObject(tooFar);
    await app.query("select palisade.guard('poisoned', $1)", [(Date.now() + 86_400_000) * 100]);
    await owner.query("select palisade.move_fence('raise', 'moved', 500000000000000, 'me', 'why')");
    await app.query("select palisade.guard('moved', 500000000000001)");
  });

  test("reads and writes no table of the fences, and fences tables of its own only", async ({ roles: { app, owner } }) => {
    await owner.query("create table public.theirs (id integer)");
    await expectRefused(
      app,
      "42501",
      "select * from palisade.resources",
      "update palisade.resources set token = 1",
      "insert into palisade.fence_changes (resource, token, changed_by, reason) values ('r', 1, 'me', 'why')",
      "select palisade.move_fence('lower', 'r', 1, 'me', 'why')",
      "select palisade.forget_history('1 day', 10)",
      "select palisade.fence_table('public.theirs', 'x/', 'id')",
      "create or replace function palisade.holds_pair(resource text) returns void language sql as ''",
    );
    await app.query("create table app.mine (id integer); select palisade.fence_table('app.mine', 'mine/', 'id')");
    await writeUnder(app, [["mine/1", 5]], "insert into app.mine values (1)");
    await expectRefused(app, "PLS03", "insert into app.mine values (2)");
    expect((await app.query("select palisade.fence_of('mine/1') as token")).rows).toEqual([{ token: "5" }]);
    await expectRefused(app, "PLS01", "select palisade.guard('mine/1', 4)");
  });

  test("G5 can plant no function where fencing a table would take it up", async ({ roles: { app, owner } }) => {
    await owner.query("grant create on schema public to app; create table public.theirs (id integer, amount integer)");
    await app.query(`create function public.replace(text, text, text) returns text language sql as $$ select 'x' $$;
      create function public.holds_pair(text) returns boolean language sql as 'select true'`);
    await owner.query("set search_path = public, pg_catalog");
    await owner.query("select palisade.fence_table('public.theirs', 'theirs/', 'id', 'amount')");
    await expectRefused(owner, "PLS03", "insert into theirs values (1, 2)");
    await writeUnder(owner, [["theirs/1/2", 5]], "insert into theirs values (1, 2)");
  });
});

const columnsOf = `
  select attname as name, format_type(coalesce(nullif(typbasetype, 0), atttypid), null) as type, attnotnull as "notNull",
    collname = 'C' as "byteOrder"
  from pg_attribute join pg_type on pg_type.oid = atttypid left join pg_collation on pg_collation.oid = attcollation
  where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`;

function described(table: PgTable): unknown[] {
  return getTableConfig(table).columns.map((column) => {
    const [type, collation] = column.getSQLType().split(" collate ");
    return { name: column.name, type, notNull: column.notNull, byteOrder: type === "text" ? collation === '"C"' : null };
  });
}

describe("migrations", () => {
  test("make the tables that there are, and of those that are read the columns that drizzle describes", async ({ database }) => {
    const made = await queryAt(
      database.url,
      "select relname from pg_class where relnamespace = 'palisade'::regnamespace and relkind = 'r'",
    );
    expect(made.map(({ relname }) => relname).sort()).toEqual(names);
    for (const table of [resources, history])
      expect(await queryAt(database.url, columnsOf, [`palisade.${getTableConfig(table).name}`])).toEqual(
        expect.arrayContaining(described(table)),
      );
  });

  test("refuse a database with another encoding than UTF8, and so does a gateway", async ({ server }) => {
    await queryAt(server.url, "create database latin1 encoding 'LATIN1' locale 'C' template template0");
    const url = Object.assign(new URL(server.url), { pathname: "/latin1" }).href;
    const sentence = /encoding LATIN1: names and documents need UTF8/;
    await expect(migrate(url)).rejects.toThrow(sentence);
    const store = await openStore({ databaseUrl: url });
    const failed = { name: "encoding", status: "failed", detail: expect.stringContaining("LATIN1") };
    expect(await store.ready()).toMatchObject({ ready: false, checks: expect.arrayContaining([failed]) });
    await store.close();
    for (const migrations of ["on", "off"] as const) {
      const gateway = createGateway({ ...quiet, databaseUrl: url, migrations });
      await expect(gateway.listen()).rejects.toThrow(sentence);
      await gateway.close();
    }
  });

  test("refuse a database that is newer, or whose files were changed, and no gateway is ready on it", async ({ postgres }) => {
    await using database = await postgres.createDatabase();
    const { applied } = await migrate(database.url);
    await using client = await connectTo(database.url);
    const { rows } = await client.query("select checksum from palisade.migrations where name = $1", [applied[0]]);
    const text = await readFile(new URL(`../../../guard/src/sql/${applied[0]}`, import.meta.url));
    expect(rows).toEqual([{ checksum: createHash("sha256").update(text).digest("hex") }]);
    await client.query("insert into palisade.migrations values ('9999_future.sql', 'x')");
    await expect(migrate(database.url)).rejects.toThrow(MigrationError);
    const store = await openStore({ databaseUrl: database.url });
    const newer = { name: "schema", status: "failed", detail: expect.stringContaining("9999_future.sql") };
    expect(await store.ready()).toMatchObject({ ready: false, checks: expect.arrayContaining([newer]) });
    await store.close();
    await client.query("delete from palisade.migrations where name = '9999_future.sql'");
    await client.query("update palisade.migrations set checksum = 'x' where name = $1", [applied[0]]);
    await expect(migrate(database.url)).rejects.toThrow("changed after it was applied");
  });
});
