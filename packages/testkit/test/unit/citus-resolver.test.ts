// Which Postgres has Citus, and what is said when none has. The programs found here are scripts
// that know their version and their folders.
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CITUS_VARIABLE, resolveCitus } from "../../src/resolve/citus.js";

let folder = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "palisade test "));
  await chmod(folder, 0o755); // The account that runs the servers of root must be able to enter.
});

afterEach(async () => {
  await rm(folder, { recursive: true });
});

const asking = (named: string) => resolveCitus({ [CITUS_VARIABLE]: named });

async function program(name: string, says: string): Promise<void> {
  await mkdir(join(folder, "bin"), { recursive: true });
  await writeFile(join(folder, "bin", name), `#!/bin/sh\ncat <<'SAID'\n${says}\nSAID\n`, { mode: 0o755 });
}

async function install(version: string): Promise<void> {
  for (const name of ["postgres", "initdb"]) await program(name, `${name} (PostgreSQL) ${version}`);
  await program("pg_config", `${join(folder, "share")}\n${join(folder, "lib")}`);
}

async function addExtension(control: string): Promise<void> {
  await mkdir(join(folder, "share", "extension"), { recursive: true });
  await writeFile(join(folder, "share", "extension", "citus.control"), control);
}

test("the named folder is taken, and the line says which Citus it has", async () => {
  await install("15.6");
  await addExtension("comment = 'Citus'\ndefault_version = '13.2-1'\n");
  await mkdir(join(folder, "lib"));
  await writeFile(join(folder, "lib", "citus.so"), "");
  expect(await asking(folder)).toMatchObject({
    binFolder: join(folder, "bin"),
    version: "15.6",
    description: `Citus 13.2-1 on Postgres 15.6 (${CITUS_VARIABLE}=${folder})`,
  });
});

test("without the variable the error says what helps", async () => {
  await expect(resolveCitus({})).rejects.toThrow(
    new RegExp(
      `^no Postgres with Citus can be had on this machine\\. Tried: ${CITUS_VARIABLE}, which is not set\\. Set ${CITUS_VARIABLE} .*Docker`,
    ),
  );
});

test("a folder that cannot be used is an error that says what is missing there", async () => {
  await expect(asking(join(folder, "nowhere"))).rejects.toThrow(/nowhere cannot be used: no postgres and initdb there\. Set /);
  await install("14.9");
  await expect(asking(folder)).rejects.toThrow("version 14.9, older than 15");
  await install("15.6");
  await expect(asking(folder)).rejects.toThrow(/it has no extension Citus: there is no .*citus\.control/);
  await addExtension("comment = 'Citus'\n");
  await expect(asking(folder)).rejects.toThrow(/its extension Citus is incomplete: there is no .*citus\.so/);
  await rm(join(folder, "bin", "pg_config"));
  await expect(asking(folder)).rejects.toThrow("no pg_config there that runs");
});
