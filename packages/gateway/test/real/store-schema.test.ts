// The SQL files, the drizzle schema, the schema to read and the rights of the roles agree with each
// other, and cannot be applied twice or half.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connectTo, PostgresServer, queryAt, withClient } from "@palisade/testkit";
import { test as base, describe, expect } from "@palisade/testkit/vitest";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { openStore } from "../../src/fenced-store.js";
import { createGateway } from "../../src/gateway.js";
import { grantRoles, MigrationError, migrate } from "../../src/store/migrate.js";
import { history, resources } from "../../src/store/reads.js";
import { test } from "../support/fixtures.js";

const names = ["fence_changes", "history", "lineage", "migrations", "recoveries", "resources"];

describe("migrations", () => {
  test("make the tables that there are, and of those that are read the columns that drizzle describes", async ({ connect }) => {
    const client = await connect();
    const { rows: made } = await client.query<{ name: string }>(
      "select relname as name from pg_class where relnamespace = 'palisade'::regnamespace and relkind = 'r'",
    );
    expect(made.map(({ name }) => name).sort()).toEqual(names);
    for (const table of [resources, history]) {
      const { rows: columns } = await client.query<Record<string, unknown>>(columnsOf, [`palisade.${getTableConfig(table).name}`]);
      expect(columns).toEqual(expect.arrayContaining(described(table)));
    }
  });

  base("run once, however many gateways start at the same time", async ({ postgres }) => {
    await using database = await postgres.createDatabase();
    const reports = await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)));
    const applied = reports.filter((report) => report.applied.length > 0);
    expect(applied).toHaveLength(1);
    expect(new Set(reports.map((report) => report.applied.length + report.alreadyThere)).size).toBe(1);
  });

  base("refuse a database with another encoding than UTF8 before anything is made in it, and so does a gateway", async ({ postgres }) => {
    const name = `latin1_${process.pid}`;
    const url = new URL(postgres.url);
    await using admin = await connectTo(url.href);
    try {
      await admin.query(`create database ${name} encoding 'LATIN1' locale 'C' template template0`);
      url.pathname = `/${name}`;
      await expect(migrate(url.href)).rejects.toThrow(/encoding LATIN1: names and documents need UTF8/);
      const store = await openStore({ databaseUrl: url.href });
      const { ready, checks } = await store.ready();
      expect(ready).toBe(false);
      expect(checks).toContainEqual({ name: "encoding", status: "failed", detail: expect.stringContaining("LATIN1") });
      await store.close();
      for (const migrations of ["on", "off"] as const) {
        const gateway = createGateway({ databaseUrl: url.href, migrations, host: "127.0.0.1", port: 0, adminPort: 0, logLevel: "silent" });
        await expect(gateway.listen()).rejects.toThrow(/encoding LATIN1: names and documents need UTF8/);
        await gateway.close();
      }
    } finally {
      await admin.query(`drop database if exists ${name} with (force)`);
    }
  });

  base(
    "refuse a database whose files were changed after they were applied, or that is newer, and no gateway is ready on it",
    async ({ postgres }) => {
      await using database = await postgres.createDatabase();
      const { applied } = await migrate(database.url);
      await using client = await connectTo(database.url);
      const [{ checksum } = { checksum: "" }] = (
        await client.query<{ checksum: string }>("select checksum from palisade.migrations where name = $1", [applied[0]])
      ).rows;
      const text = await readFile(new URL(`../../src/store/migrations/${applied[0]}`, import.meta.url));
      expect(checksum).toBe(createHash("sha256").update(text).digest("hex"));
      await client.query("insert into palisade.migrations values ('9999_future.sql', 'x')");
      await expect(migrate(database.url)).rejects.toThrow(MigrationError);
      const store = await openStore({ databaseUrl: database.url });
      const newer = { name: "schema", status: "failed", detail: expect.stringContaining("9999_future.sql") };
      expect(await store.ready()).toMatchObject({ ready: false, checks: expect.arrayContaining([newer]) });
      await store.close();
      await client.query("delete from palisade.migrations where name = '9999_future.sql'");
      await client.query("update palisade.migrations set checksum = 'x' where name = $1", [applied[0]]);
      await expect(migrate(database.url)).rejects.toThrow("changed after it was applied");
    },
  );
});

const columnsOf = `
  select attname as name, format_type(atttypid, null) as type, attnotnull as "notNull", collname = 'C' as "byteOrder"
  from pg_attribute left join pg_collation on pg_collation.oid = attcollation
  where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`;

function described(table: PgTable): unknown[] {
  return getTableConfig(table).columns.map((column) => {
    const [type, collation] = column.getSQLType().split(" collate ");
    const isText = type === "text";
    return { name: column.name, type, notNull: column.notNull, byteOrder: isText ? collation === '"C"' : null };
  });
}

describe("the roles", () => {
  base("the gateway's can do all a gateway does, and can neither delete nor truncate; an application's can only raise", async () => {
    await using server = await PostgresServer.start(); // Roles belong to a whole server.
    await migrate(server.url);
    await grantRoles(server.url);
    await grantRoles(server.url);
    await queryAt(server.url, "create role gateway login in role palisade_gateway; create role app login in role palisade_app");
    await queryAt(server.url, "create schema mine authorization app");
    await expectGatewayRights(as(server.url, "gateway"));
    await expectAppRights(as(server.url, "app"));
  });
});

function as(url: string, role: string): string {
  const other = new URL(url);
  other.username = role;
  return other.href;
}

async function expectGatewayRights(url: string): Promise<void> {
  expect(await migrate(url)).toMatchObject({ applied: [] });
  const store = await openStore({ databaseUrl: url, history: "on" });
  const numbered = { op: "put", resource: "r", token: 1, seq: 1, value: "{}" } as const;
  expect(await store.write(numbered)).toMatchObject({ kind: "accepted" });
  expect(await store.write(numbered)).toMatchObject({ kind: "sequence_out_of_order", currentSeq: 1 });
  expect(await store.write({ op: "patch", resource: "r", token: 1, value: "{}" })).toMatchObject({ kind: "accepted" });
  expect(await store.transaction({ operations: [{ op: "delete", resource: "r", token: 1 }] })).toMatchObject({ kind: "committed" });
  expect(await store.raiseFence({ resource: "r", token: 9, by: "me", reason: "why" })).toMatchObject({ kind: "changed" });
  expect(await store.history({ resource: "r", limit: 9 })).toMatchObject({ entries: [{}, {}, {}] });
  expect((await store.ready()).checks).toContainEqual({ name: "rights", status: "ok", detail: "this role cannot delete fences" });
  await store.close();
  await withClient(url, async (client) => {
    await client.query("select palisade.forget_history('1 day', 10)");
    for (const name of names) {
      for (const text of [`delete from palisade.${name}`, `truncate palisade.${name}`, `drop table palisade.${name}`])
        await expect(client.query(text)).rejects.toMatchObject({ code: "42501" });
    }
  });
}

async function expectAppRights(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("select palisade.guard('app', 5)");
    expect((await client.query("select palisade.fence_of('app') as token")).rows).toEqual([{ token: "5" }]);
    await expect(client.query("select palisade.guard('app', 4)")).rejects.toMatchObject({ code: "PLS01" });
    const forbidden = [
      "select * from palisade.resources",
      "update palisade.resources set token = 1",
      "select palisade.move_fence('lower', 'app', 1, 'me', 'why')",
      "select palisade.forget_history('1 day', 10)",
    ];
    for (const text of forbidden) await expect(client.query(text)).rejects.toMatchObject({ code: "42501" });
    await client.query("create table mine.orders (id integer)");
    await client.query("select palisade.fence_table('mine.orders', 'mine/', 'id')");
    await client.query("begin");
    await client.query("select palisade.present('mine/1', 5)");
    await client.query("insert into mine.orders values (1)");
    await client.query("commit");
    await expect(client.query("insert into mine.orders values (2)")).rejects.toMatchObject({ code: "PLS03" });
  });
}
