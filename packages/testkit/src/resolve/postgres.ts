// Chooses the Postgres that a local server runs: the folder that was asked for, else the pinned npm
// binaries, else the system's own. Whatever it returns has been executed once as the account that
// will run it. A folder that was asked for and does not work is an error.
import { readdir, realpath } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { type Account, NoPlaceForPostgres, run, serverAccount } from "./postgres-cache.js";
import { npmBinaries, npmPackageName } from "./postgres-npm.js";

export interface PostgresInstallation {
  readonly binFolder: string;
  readonly version: string;
  readonly account: Account | undefined;
  /** One line that says what was chosen and why. */
  readonly description: string;
}

/** A base copy uses pg_backup_start, which carries this name since 15. */
const OLDEST_MAJOR = 15;

const remedy = [
  "Install the dependencies of this workspace (the binaries come with them), or a Postgres of the system (`apt-get install postgresql`,",
  `\`brew install postgresql@17\`), or point PALISADE_POSTGRES_BIN at a folder with \`postgres\` and \`initdb\` of version ${OLDEST_MAJOR} or newer,`,
  "or set PALISADE_TEST_PROVIDER=docker.",
].join(" ");

export class NoPostgres extends Error {
  /** Where it was looked for, and why each was no good. */
  readonly tried: string;

  constructor(tried: string) {
    super(`no Postgres can be had on this machine. Tried: ${tried}. ${remedy}`);
    this.tried = tried;
  }
}

/** The version of a bin folder; throws what is wrong with it. */
export async function probe(binFolder: string, account: Account | undefined): Promise<string> {
  const answers = await Promise.all(
    ["postgres", "initdb"].map((program) => run(join(binFolder, program), ["--version"], { ...account, timeout: 10_000 })),
  );
  const version = / (\d+(?:\.\d+)*)/.exec(answers[0]?.stdout ?? "")?.[1];
  if (version === undefined) throw new Error(`postgres --version said ${JSON.stringify(answers[0]?.stdout)}`);
  if (Number.parseInt(version, 10) < OLDEST_MAJOR) throw new Error(`it is version ${version}, older than ${OLDEST_MAJOR}`);
  return version;
}

export function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? "no postgres and initdb there" : code === "EACCES" ? "not executable by the server's account" : message.trim();
}

async function newestVersions(root: string): Promise<string[]> {
  // Only Debian and its relatives have such a folder.
  const versions = await readdir(root).catch(() => []);
  return versions.sort((a, b) => Number.parseFloat(b) - Number.parseFloat(a)).map((version) => join(root, version, "bin"));
}

export async function systemFolders({ environment, distributionRoot }: Omit<Sources, "fromNpm">): Promise<string[]> {
  const onPath = (environment.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  // Absent from most folders.
  const real = await Promise.all(onPath.map((folder) => realpath(join(folder, "postgres")).catch(() => undefined)));
  const found = real.filter((program) => program !== undefined).map((program) => dirname(program));
  return [...new Set([...found, ...(await newestVersions(distributionRoot))])];
}

async function explicit(binFolder: string, account: Account | undefined): Promise<PostgresInstallation> {
  try {
    const version = await probe(binFolder, account);
    return { binFolder, version, account, description: `Postgres ${version} (PALISADE_POSTGRES_BIN=${binFolder})` };
  } catch (error) {
    throw new Error(`PALISADE_POSTGRES_BIN=${binFolder} cannot be used: ${reason(error)}. ${remedy}`, { cause: error });
  }
}

/** Where to look; the parameters exist so that every branch can be tested on one machine. */
export interface Sources {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The bin folder of the npm binaries, or undefined where they are not installed. */
  readonly fromNpm: (account: Account | undefined) => Promise<string | undefined>;
  /** Holds one folder per major version, each with a bin folder. */
  readonly distributionRoot: string;
}

const thisMachine: Sources = { environment: process.env, fromNpm: npmBinaries, distributionRoot: "/usr/lib/postgresql" };

export async function resolvePostgres(sources: Sources): Promise<PostgresInstallation> {
  const account = serverAccount();
  const asked = sources.environment.PALISADE_POSTGRES_BIN;
  if (asked) return await explicit(asked, account);
  const refusals: string[] = [];
  let noPlace: NoPlaceForPostgres | undefined;
  try {
    const binFolder = await sources.fromNpm(account);
    if (binFolder === undefined) refusals.push(`npm package ${npmPackageName()}: not installed`);
    else {
      const version = await probe(binFolder, account);
      return { binFolder, version, account, description: `Postgres ${version} (npm package ${npmPackageName()})` };
    }
  } catch (error) {
    if (error instanceof NoPlaceForPostgres) noPlace = error;
    refusals.push(`npm package ${npmPackageName()}: ${reason(error)}`);
  }
  for (const binFolder of await systemFolders(sources)) {
    try {
      const version = await probe(binFolder, account);
      return { binFolder, version, account, description: `Postgres ${version} (${binFolder}; ${refusals.join("; ")})` };
    } catch (error) {
      refusals.push(`${binFolder}: ${reason(error)}`);
    }
  }
  if (noPlace !== undefined) throw noPlace;
  throw new NoPostgres(`${refusals.join("; ")}; PATH and ${sources.distributionRoot}`);
}

let resolved: Promise<PostgresInstallation> | undefined;

/** The one that this machine runs; looked for once per process. */
export function thisPostgres(): Promise<PostgresInstallation> {
  resolved ??= resolvePostgres(thisMachine);
  return resolved;
}
