// Who may do what to a fence. Nothing that a caller brings along runs with the rights of the
// owner of the fences, and neither role can lower a fence past the record.
import { connectTo, PostgresServer } from "@palisade/testkit";
import { describe, expect, test as fresh } from "@palisade/testkit/vitest";
import type pg from "pg";
import { openStore } from "../../src/fenced-store.js";
import { grantRoles, migrate } from "../../src/store/migrate.js";
import { test } from "../support/fixtures.js";
import { writeUnder } from "../support/sql.js";

const PINNED = "search_path=pg_catalog, pg_temp";

/** Migrated by a superuser, as docker-compose.yml does; roles belong to a whole server. */
interface Roles extends AsyncDisposable {
  readonly owner: pg.Client;
  readonly app: pg.Client;
  readonly gateway: pg.Client;
  readonly gatewayUrl: string;
}

async function openRoles(): Promise<Roles> {
  const server = await PostgresServer.start();
  const url = (user: string): string => Object.assign(new URL(server.url), { username: user }).href;
  await migrate(server.url);
  await grantRoles(server.url);
  const owner = await connectTo(server.url);
  await owner.query("create role gateway login in role palisade_gateway; create role app login in role palisade_app");
  await owner.query("create schema app authorization app");
  const [app, gateway] = [await connectTo(url("app")), await connectTo(url("gateway"))];
  return {
    owner,
    app,
    gateway,
    gatewayUrl: url("gateway"),
    async [Symbol.asyncDispose]() {
      await Promise.all([owner, app, gateway].map((client) => client.end()));
      await server[Symbol.asyncDispose]();
    },
  };
}

/** Writes down as whom it ran, when a value of the type becomes text or JSON. */
function bait(schema: string): string {
  const names = ["json", "jsonb", "text"];
  return [
    `create table if not exists app.ran_as (who text); grant insert on app.ran_as to public; grant usage on schema app to public`,
    `create type ${schema}.bait as (a integer)`,
    ...names.flatMap((type) => [
      `create function ${schema}.to_${type}(${schema}.bait) returns ${type} language plpgsql as
         'begin insert into app.ran_as values (current_user); return ''"1"''; end'`,
      `create cast (${schema}.bait as ${type}) with function ${schema}.to_${type}(${schema}.bait) as implicit`,
    ]),
  ].join(";\n");
}

describe("nothing of the caller's runs as the owner of the fences", () => {
  fresh("G5 not a cast of its own, on a temporary table or on one of its own", async () => {
    await using roles = await openRoles();
    const { app, owner } = roles;
    const attempts: string[] = [];
    for (const [schema, table] of [
      ["pg_temp", "create temporary table mine (id integer, b pg_temp.bait)"],
      ["app", "create table app.mine (id integer, b app.bait)"],
    ] as const) {
      const name = schema === "app" ? "app.mine" : "mine";
      await app.query(bait(schema));
      await app.query(table);
      const attempt = async (...texts: readonly string[]) => {
        for (const text of texts) await app.query(text).catch((error: Error) => attempts.push(error.message));
      };
      await attempt(`select palisade.fence_table('${name}', 'x/', 'id')`, `select palisade.fence_table('${name}', 'y/', 'b')`);
      await attempt("begin; select palisade.guard('x/1', 5)", `insert into ${name} values (1, row(1)); commit`, "rollback");
      await attempt("begin; select palisade.present(5)", `insert into ${name} values (1, row(1)); commit`, "rollback");
    }
    const { rows } = await owner.query<{ who: string }>("select distinct who from app.ran_as where who <> 'app'");
    expect(rows).toEqual([]);
    expect(attempts.join("\n")).toMatch(/temporary/);
    expect((await app.query("select count(*)::int as n from app.mine")).rows).toEqual([{ n: 1 }]);
  });

  test("G5 every function of the schema pins its search path", async ({ connect }) => {
    const client = await connect();
    const { rows } = await client.query(
      `select oid::regprocedure::text as name from pg_proc
       where pronamespace = 'palisade'::regnamespace and not coalesce($1 = any (proconfig), false)`,
      [PINNED],
    );
    expect(rows).toEqual([]);
  });

  test("G5 functions with the rights of the owner take plain texts and numbers, and the public may call none", async ({ connect }) => {
    const client = await connect();
    const { rows } = await client.query<{ name: string; open: boolean }>(
      `select proname || '(' || pg_get_function_identity_arguments(oid) || ')' as name, has_function_privilege('public', oid, 'execute') as open
       from pg_proc where pronamespace = 'palisade'::regnamespace and prosecdef order by 1`,
    );
    expect(rows.map(({ name }) => name)).toEqual([
      "beat()",
      "confirm_lineage(at_least bigint)",
      "fence_of(resource text)",
      "forget_history(older_than interval, at_most integer)",
      "guard(resource text, token bigint, seq bigint, holder text)",
      "holds_pair(resource text)",
      "move_fence(direction text, resource text, token bigint, changed_by text, reason text)",
    ]);
    expect(rows.filter(({ open }) => open)).toEqual([]);
  });

  fresh("G5 not a function of a user who may create in public, when the gateway or an operator works", async () => {
    await using roles = await openRoles();
    const { owner, app, gateway, gatewayUrl } = roles;
    await owner.query("grant create on schema public to app");
    await app.query(`create table app.ran_as (who text); grant insert on app.ran_as to public; grant usage on schema app to public`);
    const row = "text, text, bigint, text, bigint, text, boolean, text, boolean, text";
    for (const [name, parameters, returns] of [
      ["jsonb_build_object", row.replace(/^text, /, ""), "jsonb"],
      ["jsonb_build_object", `${row.replace(/^text, /, "")}, text`, "jsonb"],
      ["jsonb_build_object", "text, jsonb", "jsonb"],
      ["cardinality", "text[]", "integer"],
      ["unnest", "text[]", "setof text"],
      ["make_interval", "secs double precision", "interval"],
      ["pg_has_role", "text, text", "boolean"],
      ["has_table_privilege", "regclass, text", "boolean"],
    ] as const)
      await app.query(`create function public.${name}(${parameters}) returns ${returns} language plpgsql as
        'begin insert into app.ran_as values (current_user); raise exception ''hijacked''; end'`);
    await using store = await openedStore(gatewayUrl);
    expect(await store.write({ op: "put", resource: "r", token: 50, value: "{}" })).toMatchObject({ kind: "accepted" });
    const both = [{ op: "patch", resource: "r", token: 50, value: '{"a":1}' } as const, { op: "seal", resource: "s", token: 1 } as const];
    const done = { kind: "committed" };
    expect(await store.transaction({ operations: both })).toMatchObject(done);
    expect(await store.raiseFence({ resource: "r", token: 51, by: "me", reason: "why" })).toMatchObject({ kind: "changed" });
    expect(await store.read("r")).toMatchObject({ token: 51 });
    expect(await store.ready()).toMatchObject({ ready: true });
    await gateway.query("select palisade.forget_history('1 day', 10), palisade.move_fence('raise', 's', 2, 'me', 'why')");
    expect((await owner.query("select * from app.ran_as")).rows).toEqual([]);
  });
});

async function openedStore(databaseUrl: string) {
  const store = await openStore({ databaseUrl, history: "on" });
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close({ drainMs: 0 }) });
}

describe("the gateway's role", () => {
  fresh("G1 cannot lower, rename or forge a fence by a plain statement, and moves one by hand only on record", async () => {
    await using roles = await openRoles();
    const { gateway, owner } = roles;
    await gateway.query(`insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at)
      values ('r', 50, 5, 7, 1, 'put', true, now())`);
    for (const change of ["token = 1", "token = 49", "seq = 4", "rev = 6"])
      await expect(gateway.query(`update palisade.resources set ${change}`), change).rejects.toMatchObject({ code: "PLS07" });
    await expect(
      gateway.query(`insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at)
        values ('r', 1, 0, 8, 1, 'put', true, now()) on conflict (resource) do update set token = excluded.token`),
    ).rejects.toMatchObject({ code: "PLS07" });
    for (const text of [
      "update palisade.resources set resource = 'elsewhere'",
      "update palisade.resources set guarded_by = pg_current_xact_id()",
      "insert into palisade.resources (resource, token, seq, rev, born, op, deleted, updated_at, guarded_by) values ('s', 1, 0, 0, 0, 'seal', true, now(), '1')",
      "insert into palisade.fence_changes (resource, token, changed_by, reason) values ('r', 1, 'me', 'why')",
      "delete from palisade.resources",
      "truncate palisade.resources",
      "alter table palisade.resources disable trigger all",
      "drop trigger fence_only_rises on palisade.resources",
    ])
      await expect(gateway.query(text), text).rejects.toMatchObject({ code: "42501" });
    await gateway.query("update palisade.resources set token = 51, seq = 0");
    await gateway.query("select palisade.move_fence('lower', 'r', 3, 'me', 'why')");
    const { rows } = await owner.query("select token, previous_token, changed_by from palisade.fence_changes");
    expect(rows).toEqual([{ token: "3", previous_token: "51", changed_by: "me" }]);
    await gateway.query("update palisade.resources set token = 51");
    for (const token of [2, 3])
      await expect(gateway.query("update palisade.resources set token = $1", [token])).rejects.toMatchObject({ code: "PLS07" });
  });

  test("G1 not even the owner lowers a fence past the record", async ({ connect }) => {
    const client = await connect();
    await client.query("select palisade.guard('owned', 50)");
    await expect(client.query("update palisade.resources set token = 49 where resource = 'owned'")).rejects.toMatchObject({
      code: "PLS07",
    });
    await client.query("select palisade.move_fence('lower', 'owned', 40, 'me', 'why')");
    await expect(client.query("update palisade.resources set token = 40 - 1 where resource = 'owned'")).rejects.toMatchObject({
      code: "PLS07",
    });
  });
});

describe("an application's role", () => {
  fresh("G4 can raise a fence, but not so far that no token the lock will issue could pass it", async () => {
    await using roles = await openRoles();
    const { app, owner } = roles;
    const tooFar = { code: "PLS03", message: expect.stringContaining("before the year 2100") };
    for (const token of ["999999999999999", "500000000000000"]) {
      await expect(app.query("select palisade.guard('poisoned', $1)", [token])).rejects.toMatchObject(tooFar);
      await expect(app.query("select palisade.present('poisoned', $1)", [token])).rejects.toMatchObject(tooFar);
      await expect(app.query("select palisade.guard_all('{poisoned}', array[$1::bigint])", [token])).rejects.toMatchObject(tooFar);
    }
    await app.query("select palisade.guard('poisoned', $1)", [(Date.now() + 86_400_000) * 100]);
    await owner.query("select palisade.move_fence('raise', 'moved', 500000000000000, 'me', 'why')");
    await app.query("select palisade.guard('moved', 500000000000001)");
  });

  fresh("reads and writes no table of the fences, and fences tables of its own only", async () => {
    await using roles = await openRoles();
    const { app, owner } = roles;
    await owner.query("create table public.theirs (id integer)");
    for (const text of [
      "select * from palisade.resources",
      "update palisade.resources set token = 1",
      "insert into palisade.fence_changes (resource, token, changed_by, reason) values ('r', 1, 'me', 'why')",
      "select palisade.move_fence('lower', 'r', 1, 'me', 'why')",
      "select palisade.fence_table('public.theirs', 'x/', 'id')",
      "create or replace function palisade.holds_pair(resource text) returns void language sql as ''",
    ])
      await expect(app.query(text), text).rejects.toMatchObject({ code: "42501" });
    await app.query("create table app.mine (id integer); select palisade.fence_table('app.mine', 'mine/', 'id')");
    await writeUnder(app, [["mine/1", 5]], "insert into app.mine values (1)");
    await expect(app.query("insert into app.mine values (2)")).rejects.toMatchObject({ code: "PLS03" });
  });

  fresh("G5 can plant no function where fencing a table would take it up", async () => {
    await using roles = await openRoles();
    const { app, owner } = roles;
    await owner.query("grant create on schema public to app; create table public.theirs (id integer, amount integer)");
    await app.query(`create function public.replace(text, text, text) returns text language sql as $$ select 'x' $$;
      create function public.holds_pair(text) returns boolean language sql as 'select true'`);
    await owner.query("set search_path = public, pg_catalog");
    await owner.query("select palisade.fence_table('public.theirs', 'theirs/', 'id', 'amount')");
    await expect(owner.query("insert into theirs values (1, 2)")).rejects.toMatchObject({ code: "PLS03" });
    await writeUnder(owner, [["theirs/1/2", 5]], "insert into theirs values (1, 2)");
    const { rows } = await owner.query(
      "select distinct pg_get_userbyid(proowner) as who from pg_proc where proname like 'palisade\\_guard\\_%'",
    );
    expect(rows).toEqual([{ who: "postgres" }]);
  });
});
