// A plain database with documents, fences and history is moved to Citus by the steps of
// docs/citus.md.
import { readFileSync } from "node:fs";
import { connectTo, PostgresDatabases } from "@palisade/testkit";
import { describe, expect, runProgram, test, uniqueName } from "../support/fixtures.js";
import { get, put } from "../support/wire.js";

async function run(url: string, ...statements: readonly string[]): Promise<readonly Record<string, unknown>[]> {
  await using client = await connectTo(url);
  let rows: readonly Record<string, unknown>[] = [];
  for (const text of statements) ({ rows } = await client.query(text));
  return rows;
}

/** The statements of the page, with the addresses of this cluster in place of its examples. */
function documented(coordinator: URL, workers: readonly URL[]): { readonly everywhere: string; readonly onCoordinator: readonly string[] } {
  const page = readFileSync(new URL("../../../../docs/citus.md", import.meta.url), "utf8");
  const [, block = ""] = /## Moving a database[\s\S]*?```sql\n([\s\S]*?)```/.exec(page) ?? [];
  const addresses: Record<string, URL> = { coordinator };
  workers.forEach((worker, index) => {
    addresses[`worker-${index + 1}`] = worker;
  });
  const [everywhere = "", ...onCoordinator] = block
    .replaceAll(/--.*$/gm, "")
    .replaceAll(/'([\w-]+)', 5432/g, (_all, name: string) => `'${addresses[name]?.hostname}', ${addresses[name]?.port}`)
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
  return { everywhere, onCoordinator };
}

describe("a plain database", () => {
  test("G1 is moved with its documents, fences and history, as the page says", async ({ postgres, startProgram, onTestFinished }) => {
    const name = uniqueName("moved").replace(/\W/g, "_");
    const servers = [postgres.url, ...postgres.joined.map(({ adminUrl }) => adminUrl)];
    const databases = await Promise.all(servers.map((server) => new PostgresDatabases(server).createDatabase({ name })));
    onTestFinished(async () => void (await Promise.all(databases.map((database) => database.drop()))));
    const urls = databases.map(({ url }) => new URL(url));
    const [coordinator, ...workers] = urls as [URL, ...URL[]];
    const env = { DATABASE_URL: coordinator.href, PALISADE_HISTORY: "on" };

    const before = await startProgram(env);
    const names = Array.from({ length: 40 }, (_, index) => `doc/${index}`);
    for (const [index, one] of names.entries()) await put(before.url, one, { token: 10 + index, value: { index } });
    await before.stop();

    const { everywhere, onCoordinator } = documented(coordinator, workers);
    for (const url of urls) await run(url.href, everywhere);
    await run(coordinator.href, ...onCoordinator);
    expect(await runProgram(["migrate", "--citus"], { DATABASE_URL: coordinator.href })).toMatchObject({
      code: 0,
      out: expect.stringContaining("the tables were distributed"),
    });

    const after = await startProgram(env);
    for (const [index, one] of names.entries()) {
      expect(await get(after.url, one)).toMatchObject({ json: { index } });
      expect(await put(after.url, one, { token: 9 + index, value: {} })).toMatchObject({ status: 412 });
    }
    const kept = await run(coordinator.href, "select count(*)::int as n from palisade.history");
    expect(kept).toEqual([{ n: 40 }]);
    const places = await run(coordinator.href, "select count(distinct nodeport)::int as n from pg_dist_shard_placement");
    expect(places).toEqual([{ n: 2 }]);
    await after.stop();
  });
});
