// A database of Citus on which no gateway may start is refused, with what is so and what to do; and
// doing it helps.
import { migrate } from "@palisade/gateway";
import { PostgresDatabases, queryAt, type TestDatabase } from "@palisade/testkit";
import { distribute } from "../../src/store/distribute.js";
import { test as base, createGateway, describe, eventually, expect, type ProgramResult, quiet, runProgram } from "../support/fixtures.js";
import { get, put } from "../support/wire.js";

/** Migrated, on servers that have Citus, and not distributed. */
const test = base
  .extend("databaseTemplate", { scope: "file" }, async () => ({ name: "gateway-before-citus", migrate }))
  /** Another copy, for a test that leaves it changed. */
  .extend("copy", ({ postgres, database: _theTemplateIsThere }, { onCleanup }): (() => Promise<string>) => {
    const copies: TestDatabase[] = [];
    onCleanup(async () => {
      await Promise.all(copies.map((database) => database.drop()));
    });
    return async () => {
      const database = await postgres.createDatabase({ from: "gateway-before-citus" });
      copies.push(database);
      return database.url;
    };
  });

const serve = (url: string): Promise<ProgramResult> =>
  runProgram(["serve"], { DATABASE_URL: url, PORT: "0", ADMIN_PORT: "0", PALISADE_API_KEYS: "none" });
const migrateOnCitus = (url: string, ...more: string[]): Promise<ProgramResult> =>
  runProgram(["migrate", "--citus", ...more], { DATABASE_URL: url });

describe("a start is refused", () => {
  test("on a database that is half distributed, and what the message says to do repairs it", async ({ startProgram, copy }) => {
    const url = await copy();
    await queryAt(url, "drop trigger fence_only_rises on palisade.resources");
    await queryAt(url, "select create_distributed_table('palisade.resources', 'resource', colocate_with => 'none')");
    const refused = await serve(url);
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(/resources are distributed .* and history, fence_changes are not/),
    });
    expect(refused.err).toContain("select undistribute_table('palisade.TABLE')");
    await queryAt(url, "select undistribute_table('palisade.resources')");
    expect(await migrateOnCitus(url)).toMatchObject({ code: 0, out: expect.stringContaining("the tables were distributed") });
    const gateway = await startProgram({ DATABASE_URL: url });
    expect(await put(gateway.url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
    await gateway.stop();
  });

  test("on a worker, whose tables it would otherwise migrate", async ({ copy, postgres }) => {
    const url = await copy();
    await distribute(url);
    const worker = Object.assign(new URL(postgres.joined[0]?.adminUrl ?? ""), { pathname: new URL(url).pathname }).href;
    for (const args of [["serve"], ["migrate"], ["migrate", "--citus"]])
      expect(await runProgram(args, { DATABASE_URL: worker, PORT: "0", ADMIN_PORT: "0", PALISADE_API_KEYS: "none" })).toMatchObject({
        code: 1,
        err: expect.stringContaining("this server is a worker of Citus: DATABASE_URL must name the coordinator"),
      });
  });

  test("on a coordinator that has lost its workers, also by a gateway that does not migrate", async ({ copy }) => {
    const url = await copy();
    await distribute(url);
    await queryAt(url, "update pg_dist_node set isactive = false where groupid > 0");
    const sentence = "this coordinator of Citus has no active worker that may keep shards: add one by citus_add_node";
    expect(await serve(url)).toMatchObject({ code: 1, err: expect.stringContaining(sentence) });
    const gateway = createGateway({ ...quiet, databaseUrl: url, migrations: "off" });
    await expect(gateway.listen()).rejects.toThrow(sentence);
    await gateway.close();
  });

  test("on a version of Citus that was never tried", async ({ copy }) => {
    const url = await copy();
    await distribute(url);
    await queryAt(url, `alter database ${new URL(url).pathname.slice(1)} set citus.enable_version_checks = off`);
    await queryAt(url, "update pg_extension set extversion = '12.1-1' where extname = 'citus'");
    expect(await serve(url)).toMatchObject({
      code: 1,
      err: expect.stringContaining("distributed by Citus 12.1, with which this version was never tried: use 13.2"),
    });
  });
});

describe("migrate --citus", () => {
  test("is refused where it cannot be: no extension, a number of shards that is none", async ({ postgres }) => {
    // Without workers, so without the extension: to drop it is to race with the daemon of its database.
    await using database = await new PostgresDatabases(postgres.url).createDatabase();
    await migrate(database.url);
    expect(await migrateOnCitus(database.url)).toMatchObject({
      code: 1,
      err: expect.stringContaining("the extension citus is not in this database"),
    });
    expect(await migrateOnCitus(database.url, "--shards", "0")).toMatchObject({
      code: 2,
      err: expect.stringContaining("--shards is a number from 1 to"),
    });
  });

  test("is refused without workers, and changes nothing", async ({ copy }) => {
    const url = await copy();
    await queryAt(url, "select citus_remove_node(nodename, nodeport) from pg_dist_node where groupid > 0");
    expect(await migrateOnCitus(url)).toMatchObject({ code: 1, err: expect.stringContaining("has no active worker") });
    expect(await queryAt(url, "select tgname from pg_trigger where tgrelid = 'palisade.resources'::regclass")).toEqual([
      { tgname: "fence_only_rises" },
    ]);
  });

  test("distributes into as many shards as it is told, once", async ({ copy }) => {
    const url = await copy();
    expect(await migrateOnCitus(url, "--shards", "6")).toMatchObject({ code: 0, out: expect.stringContaining('"shards":6,"workers":2') });
    expect(await migrateOnCitus(url)).toMatchObject({ code: 0, out: expect.stringContaining("as they were before") });
  });
});

describe("two gateways", () => {
  test("G1 one that knows the tables as plain writes nothing once they are distributed, and says why", async ({
    startProgram,
    copy,
    onTestFinished,
  }) => {
    const url = await copy();
    const older = createGateway({ ...quiet, databaseUrl: url, history: "on" });
    onTestFinished(async () => void (await older.close()));
    await older.listen();
    expect(await put(older.url, "x", { token: 1, value: { n: 1 } })).toMatchObject({ status: 201 });
    await distribute(url);
    const newer = await startProgram({ DATABASE_URL: url, PALISADE_HISTORY: "on" });
    expect(await put(newer.url, "x", { token: 2, value: { n: 2 } })).toMatchObject({ status: 200 });
    await eventually(() => put(older.url, "x", { token: 3, value: { n: 3 } })).toMatchObject({ status: 503 });
    const ready = await (await fetch(`${older.adminUrl}/ready`)).text();
    expect(ready).toContain("were on plain Postgres when this gateway looked first, and are on Citus now: start the gateway anew");
    expect(await get(newer.url, "x")).toMatchObject({ json: { n: 2 } });
    await newer.stop();
  });
});
