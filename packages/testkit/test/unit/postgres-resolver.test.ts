// Which Postgres is taken, and what is said when there is none. The programs found here are scripts
// that only know their version.
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { resolvePostgres, type Sources } from "../../src/resolve/postgres.js";

let folder = "";
let nothing: Sources;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "palisade test "));
  await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
  nothing = { environment: { PATH: folder }, fromNpm: async () => undefined, distributionRoot: join(folder, "distribution") };
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

async function install(binFolder: string, version: string): Promise<string> {
  await mkdir(binFolder, { recursive: true });
  for (const program of ["postgres", "initdb"]) {
    await writeFile(join(binFolder, program), `#!/bin/sh\necho "${program} (PostgreSQL) ${version} (Debian ${version}-1)"\n`, {
      mode: 0o755,
    });
  }
  return binFolder;
}

test("the folder in PALISADE_POSTGRES_BIN comes before all others", async () => {
  const asked = await install(join(folder, "asked for"), "16.3");
  const npm = await install(join(folder, "npm"), "17.1");
  const found = await resolvePostgres({ ...nothing, environment: { PALISADE_POSTGRES_BIN: asked }, fromNpm: async () => npm });
  expect(found).toMatchObject({ binFolder: asked, version: "16.3" });
  expect(found.description).toContain("PALISADE_POSTGRES_BIN");
});

test("a folder that was asked for and cannot be used is an error, not a reason to take another", async () => {
  const npm = await install(join(folder, "npm"), "17.1");
  const asking = (asked: string): Promise<unknown> =>
    resolvePostgres({ ...nothing, environment: { PALISADE_POSTGRES_BIN: asked }, fromNpm: async () => npm });
  await expect(asking(join(folder, "nowhere"))).rejects.toThrow(
    /PALISADE_POSTGRES_BIN=.*nowhere cannot be used: no postgres and initdb there/,
  );
  await expect(asking(await install(join(folder, "old"), "12.4"))).rejects.toThrow("version 12.4, older than 15");
});

test("the npm binaries come before the system's", async () => {
  const npm = await install(join(folder, "npm"), "17.1");
  await install(folder, "16.3");
  expect(await resolvePostgres({ ...nothing, fromNpm: async () => npm })).toMatchObject({ binFolder: npm, version: "17.1" });
});

test("the system's Postgres on PATH is taken when the npm binaries are missing or do not run, and the line says so", async () => {
  await install(folder, "16.3");
  const missing = await resolvePostgres(nothing);
  expect(missing).toMatchObject({ binFolder: folder, version: "16.3" });
  expect(missing.description).toMatch(/npm package .*: not installed/);
  const broken = await resolvePostgres({ ...nothing, fromNpm: async () => join(folder, "empty") });
  expect(broken.description).toMatch(/npm package .*: no postgres and initdb there/);
});

test("of the distribution's versions the newest is taken, and one that is too old is passed over", async () => {
  await install(join(nothing.distributionRoot, "9.6", "bin"), "9.6.24");
  await install(join(nothing.distributionRoot, "15", "bin"), "15.8");
  await install(join(nothing.distributionRoot, "16", "bin"), "16.3");
  expect(await resolvePostgres(nothing)).toMatchObject({ version: "16.3" });
});

test("when there is none, the error says what was tried and what helps", async () => {
  await install(join(nothing.distributionRoot, "13", "bin"), "13.2");
  await expect(resolvePostgres(nothing)).rejects.toThrow(
    /no Postgres can be had.*npm package .*not installed.*version 13\.2, older than 15.*Install the dependencies.*apt-get install postgresql.*PALISADE_POSTGRES_BIN/s,
  );
});
