// Finds the Postgres installation that has the extension Citus: the one that is named, because no
// package of Debian or of npm has it.
import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type PostgresInstallation, probe, reason } from "./postgres.js";
import { run, serverAccount } from "./postgres-cache.js";

export const CITUS_VARIABLE = "PALISADE_TEST_CITUS";

const remedy = [
  `Set ${CITUS_VARIABLE} to the folder of a Postgres that has the extension Citus: bin/postgres, bin/initdb and bin/pg_config lie below it`,
  "(with the packages of Citus Data that is /usr/lib/postgresql/17), or start a Docker engine, which runs the image citusdata/citus.",
].join(" ");

export async function resolveCitus(environment: Readonly<Record<string, string | undefined>>): Promise<PostgresInstallation> {
  const folder = environment[CITUS_VARIABLE];
  if (!folder) throw new Error(`no Postgres with Citus can be had on this machine. Tried: ${CITUS_VARIABLE}, which is not set. ${remedy}`);
  const account = serverAccount();
  const binFolder = join(folder, "bin");
  try {
    const version = await probe(binFolder, account);
    const extension = await extensionVersion(binFolder);
    return { binFolder, version, account, description: `Citus ${extension} on Postgres ${version} (${CITUS_VARIABLE}=${folder})` };
  } catch (error) {
    throw new Error(`${CITUS_VARIABLE}=${folder} cannot be used: ${reason(error)}. ${remedy}`, { cause: error });
  }
}

/** What CREATE EXTENSION would create; throws what is missing. */
async function extensionVersion(binFolder: string): Promise<string> {
  const { stdout } = await run(join(binFolder, "pg_config"), ["--sharedir", "--pkglibdir"]).catch(() => {
    throw new Error("no pg_config there that runs");
  });
  const [shared = "", libraries = ""] = stdout.trim().split("\n");
  const control = join(shared, "extension", "citus.control");
  const text = await readFile(control, "utf8").catch(() => {
    throw new Error(`it has no extension Citus: there is no ${control}`);
  });
  const library = join(libraries, "citus.so");
  await access(library).catch(() => {
    throw new Error(`its extension Citus is incomplete: there is no ${library}`);
  });
  const version = /^default_version\s*=\s*'([^']+)'/m.exec(text)?.[1];
  if (version === undefined) throw new Error(`${control} names no default_version`);
  return version;
}

let resolved: Promise<PostgresInstallation> | undefined;

/** The one that this machine runs; looked for once per process. */
export function thisCitus(): Promise<PostgresInstallation> {
  resolved ??= resolveCitus(process.env);
  return resolved;
}
