// Finds the pgbouncer that tests of a pooled Postgres run: the named one, one on PATH, or one
// fetched from the distribution's packages without root. Without one the test fails and says what
// helps.
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { distribution } from "./built-once.js";
import { fetchPackages, unpacked } from "./distribution-packages.js";
import { type Account, prepared, reachableBy, run, serverAccount } from "./postgres-cache.js";
import type { Environment } from "./private-apt.js";

export interface PgbouncerProgram {
  readonly binary: string;
  /** For LD_LIBRARY_PATH; empty when the system has all its libraries. */
  readonly libraryPath: string;
  /** It refuses to run as root. */
  readonly account: Account | undefined;
  readonly version: string;
}

const pgbouncer = { what: "pgbouncer", packages: ["pgbouncer"], path: "usr/sbin/pgbouncer" };
const TIMEOUT_MS = 10_000;

let found: Promise<PgbouncerProgram> | undefined;

/** Looked for once per process. */
export function resolvePgbouncer(): Promise<PgbouncerProgram> {
  found ??= findPgbouncer(process.env);
  return found;
}

export async function findPgbouncer(env: Environment): Promise<PgbouncerProgram> {
  const account = serverAccount();
  const named = env.PGBOUNCER_BIN;
  if (named !== undefined && named !== "") return await inspected({ binary: named, libraryPath: "", account });
  for (const folder of [...(env.PATH ?? "").split(delimiter), "/usr/sbin"]) {
    const binary = join(folder, "pgbouncer");
    if (folder !== "" && (await runs(binary, account))) return await inspected({ binary, libraryPath: "", account });
  }
  try {
    const fill = (content: string): Promise<void> => fetchPackages(content, pgbouncer, env);
    const content = await prepared({ name: `pgbouncer-${await distribution()}`, account, fill });
    return await inspected({ ...(await unpacked(content, pgbouncer)), account });
  } catch (cause) {
    const help = "install it (apt-get install pgbouncer), or set PGBOUNCER_BIN to a pgbouncer of version 1.18 or newer";
    throw new Error(`no pgbouncer can be had on this machine: ${(cause as Error).message}; ${help}`, { cause });
  }
}

async function runs(binary: string, account: Account | undefined): Promise<boolean> {
  return await access(binary, constants.X_OK).then(
    () => reachableBy(binary, account),
    () => false,
  );
}

/** Asks it for its version: the proof that it runs here. */
async function inspected(program: Omit<PgbouncerProgram, "version">): Promise<PgbouncerProgram> {
  const { binary, libraryPath, account } = program;
  const env = libraryPath === "" ? process.env : { ...process.env, LD_LIBRARY_PATH: libraryPath };
  const { stdout } = await run(binary, ["--version"], { ...account, env, timeout: TIMEOUT_MS });
  const version = /PgBouncer (\S+)/i.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`${binary} does not say that it is pgbouncer: ${stdout.trim()}`);
  return { ...program, version };
}
