// Two versions of the gateway on one database, as during a rolling upgrade: the newer one is this
// version with further migrations.
import { appendFileSync, cpSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { scratchFolder } from "@palisade/testkit";
import { migrations } from "../../src/store/migrations.generated.js";
import { describe, eventually, expect, test } from "../support/fixtures.js";
import { type GatewayProcess, program } from "../support/gateway-process.js";
import { put } from "../support/wire.js";

const newestHere = migrations.at(-1)?.name.slice(0, 4) ?? "";

/** The program of a version that has these migrations as well. */
function versionWith(files: Readonly<Record<string, string>>): string {
  const here = join(dirname(program), "..");
  const there = scratchFolder("gateway-version");
  for (const part of ["dist", "package.json"]) cpSync(join(here, part), join(there, part), { recursive: true });
  symlinkSync(join(here, "node_modules"), join(there, "node_modules"));
  const further = Object.entries(files).map(([name, text]) => `\nmigrations.push(${JSON.stringify({ name, text })});`);
  appendFileSync(join(there, "dist", "store", "migrations.generated.js"), further.join(""));
  return join(there, "dist", "main.js");
}

const expand = `-- Runs with gateways from ${newestHere} on.
alter table palisade.resources add column remark text;
create index resources_remark on palisade.resources (remark);`;
const contract = "drop index palisade.resources_remark;";

async function schemaOf(gateway: GatewayProcess): Promise<unknown> {
  const response = await fetch(`${gateway.adminUrl}/ready`);
  const { checks } = (await response.json()) as { checks: readonly { name: string; status: string; detail: string }[] };
  const schema = checks.find(({ name }) => name === "schema");
  return [response.status, schema?.status, schema?.detail];
}

describe("two versions at once", () => {
  test("G1 write to one database and stay ready while the newer schema says that the older version runs on it", async ({
    postgres,
    startProgram,
    onTestFinished,
  }) => {
    const database = await postgres.createDatabase();
    onTestFinished(() => database.drop());
    const env = { DATABASE_URL: database.url };
    const older = await startProgram(env);
    expect(await put(older.url, "x", { token: 1, value: {} })).toMatchObject({ status: 201 });
    const newer = await startProgram(env, versionWith({ "9001_expand.sql": expand }));
    for (const token of [2, 4, 6]) {
      expect(await put(newer.url, "x", { token, value: { by: "newer" } })).toMatchObject({ status: 200 });
      expect(await put(older.url, "x", { token: token + 1, value: { by: "older" } })).toMatchObject({ status: 200 });
      for (const { url } of [older, newer]) expect(await put(url, "x", { token, value: {} })).toMatchObject({ status: 412 });
    }
    expect(await schemaOf(older)).toEqual([200, "ok", "newer than this gateway, which runs on it: 9001_expand.sql"]);
    const back = await startProgram(env);
    expect(await put(back.url, "x", { token: 8, value: {} })).toMatchObject({ status: 200 });

    const contracted = await startProgram(env, versionWith({ "9001_expand.sql": expand, "9002_contract.sql": contract }));
    await eventually(() => schemaOf(older)).toEqual([503, "failed", expect.stringContaining("9002_contract.sql")]);
    expect(await schemaOf(contracted)).toEqual([200, "ok", "up to date"]);
    await Promise.all([older, newer, back, contracted].map((gateway) => gateway.stop()));
  });
});
