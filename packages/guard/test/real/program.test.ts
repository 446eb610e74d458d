// `npx @palisade/guard` on a database that no gateway has seen: each first error names the command
// that helps, and it helps.
import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { connectTo, PostgresServer } from "@palisade/testkit";
import { expect, test as plain } from "@palisade/testkit/vitest";
import { withFencedTransaction } from "../../src/fenced-transaction.js";
import { migrate } from "../../src/schema.js";

// Roles belong to a whole server.
const test = plain.extend("server", { scope: "file" }, async ({ postgres: _shared }, { onCleanup }): Promise<PostgresServer> => {
  const server = await PostgresServer.start();
  onCleanup(() => server.stop());
  return server;
});

const program = fileURLToPath(new URL("../../dist/main.js", import.meta.url));

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function guardProgram(args: readonly string[], databaseUrl?: string, file = program): Promise<Ended> {
  const { DATABASE_URL: _ours, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [file, ...args],
      { env: databaseUrl === undefined ? env : { ...env, DATABASE_URL: databaseUrl } },
      (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

test("G1 fences a table of one's own: migrate, grant, a write, and a stale one that is refused", async ({ server }) => {
  const { url } = await server.createDatabase();
  await using owner = await connectTo(url);
  await owner.query('create role "shop app" login; create table accounts (id integer primary key, balance integer not null)');
  await owner.query('insert into accounts values (7, 100); grant select, update on accounts to "shop app"');
  await using app = await connectTo(Object.assign(new URL(url), { username: "shop app" }).href);
  const withdraw = (token: number): Promise<unknown> =>
    withFencedTransaction(app, { resource: "accounts/7", token }, (tx) =>
      tx.query("update accounts set balance = balance - 10 where id = 7"),
    );

  await expect(withdraw(5)).rejects.toThrow("this database has no fences: run npx @palisade/guard migrate");
  expect(await guardProgram(["grant"], url)).toMatchObject({ code: 1, stderr: expect.stringContaining("run npx @palisade/guard migrate") });
  expect(await guardProgram(["migrate"], url)).toMatchObject({ code: 0, stdout: expect.stringContaining("0002_own_tables.sql") });
  await owner.query("select palisade.fence_table('accounts', 'accounts/', 'id')");
  await expect(withdraw(5)).rejects.toThrow("this role may not use the fences: run npx @palisade/guard grant ROLE");
  expect(await guardProgram(["grant", "shop app"], url)).toMatchObject({ code: 0, stdout: "May use the fences: shop app.\n" });

  await withdraw(5);
  await expect(withdraw(4)).rejects.toMatchObject({ code: "fencing_token_stale", currentToken: 5 });
  await expect(app.query("update accounts set balance = 0")).rejects.toMatchObject({ code: "PLS03" });
  expect((await owner.query("select balance from accounts")).rows).toEqual([{ balance: 90 }]);
  expect(await guardProgram(["migrate"], url)).toMatchObject({ code: 0, stdout: "The fences are there, as they were before.\n" });
});

test("prints SQL that makes what migrate makes, and is known to it", async ({ server }) => {
  const [printed, migrated] = [await server.createDatabase(), await server.createDatabase()];
  const { stdout: schema } = await guardProgram(["sql"]);
  const { stdout: grants } = await guardProgram(["sql", "--grants"]);
  await using client = await connectTo(printed.url);
  await client.query(schema);
  await client.query(grants);
  expect(await migrate(printed.url)).toMatchObject({ applied: [] });
  expect(await guardProgram(["migrate"], migrated.url)).toMatchObject({ code: 0 });
  expect(await guardProgram(["grant"], migrated.url)).toMatchObject({ code: 0 });
  await using other = await connectTo(migrated.url);
  const made = `select relname as name, relkind::text as kind, relacl::text as rights from pg_class where relnamespace = 'palisade'::regnamespace
    union all select oid::regprocedure::text, md5(prosrc), proacl::text from pg_proc where pronamespace = 'palisade'::regnamespace order by 1, 2`;
  const { rows } = await client.query(made);
  expect(rows.length).toBeGreaterThan(20);
  expect((await other.query(made)).rows).toEqual(rows);
});

test("refuses what it does not understand, and without pg says what would help", async () => {
  const refusals = await Promise.all([
    guardProgram(["migrat"]),
    guardProgram(["migrate"]),
    guardProgram(["sql", "orders"]),
    guardProgram(["--all"]),
  ]);
  expect(refusals.map(({ code, stderr }) => [code, stderr])).toEqual([
    [2, expect.stringContaining('no command "migrat"; there are migrate, grant and sql')],
    [2, expect.stringContaining("DATABASE_URL is missing")],
    [2, expect.stringContaining('"orders" is not understood after sql')],
    [2, expect.stringContaining("--all")],
  ]);
  const folder = await mkdtemp(join(tmpdir(), "palisade-guard-"));
  try {
    await cp(new URL("../../dist", import.meta.url), folder, { recursive: true });
    await cp(new URL("../../package.json", import.meta.url), join(folder, "package.json"));
    const alone = (args: readonly string[]) => guardProgram(args, "postgres://127.0.0.1:1/app", join(folder, "main.js"));
    expect(await alone(["migrate"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("npm install pg, or run what npx @palisade/guard sql prints"),
    });
    expect(await alone(["sql"])).toMatchObject({ code: 0, stdout: expect.stringContaining("create table palisade.resources") });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
