// Fetches redis-server and the libraries it lacks from the distribution's package archive, without root and without touching the system's package state.
// It must not install anything: packages are unpacked into the cache folder, and used from there.
import { execFile } from "node:child_process";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtOnce } from "./built-once.js";
import { distribution } from "./distribution.js";

const run = promisify(execFile);
const commandTimeoutMs = 120_000;
// The C library and its loader must stay the system's own: two versions in one process crash.
const neverBundled = new Set(["libc6", "libc-bin", "libgcc-s1", "libcrypt1"]);

export interface UnpackedRedis {
  readonly binary: string;
  readonly libraryPath: string;
}

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

export async function fetchRedisPackages(env: Environment): Promise<UnpackedRedis> {
  const build = async (workshop: string): Promise<void> => {
    const apt = new PrivateApt(workshop, env);
    await apt.mustBeThere();
    process.stderr.write("no Redis server is installed: fetching the distribution's package, without root (once)\n");
    await apt.fetch(["redis-server", "redis-tools"]);
    await addMissingLibraries(apt);
    await apt.tidy();
  };
  const folder = await builtOnce(`redis-${await distribution()}`, build, env.PALISADE_CACHE_DIR);
  return unpacked(join(folder, "root"));
}

/** apt-get with all its state in our folder: no root, no locks, no change to the system. */
class PrivateApt {
  readonly root: string;
  readonly #workshop: string;
  readonly #env: NodeJS.ProcessEnv;
  #lists: readonly string[] = [];
  readonly #fetched = new Set<string>();

  constructor(workshop: string, env: Environment) {
    this.#workshop = workshop;
    this.root = join(workshop, "root");
    this.#env = { ...env, LC_ALL: "C" };
  }

  async mustBeThere(): Promise<void> {
    for (const command of ["apt-get", "dpkg"]) await this.#run(command, ["--version"]);
  }

  /** Downloads and unpacks; when the system's package lists are absent or out of date, with lists of our own. */
  async fetch(packages: readonly string[]): Promise<void> {
    const archives = join(this.#workshop, "archives");
    await mkdir(archives, { recursive: true });
    const download = (): Promise<Output> => this.#apt("apt-get", ["download", ...packages], archives);
    await download().catch(async (cause: Error) => {
      if (this.#lists.length > 0) throw cause;
      const warning = await this.#updatePrivateLists();
      await download().catch((again: Error) => {
        throw warning === undefined ? again : new Error(`${again.message}, after apt-get update: ${warning}`, { cause: again });
      });
    });
    for (const name of packages) this.#fetched.add(name);
    for (const archive of await readdir(archives)) await this.#run("dpkg", ["-x", join(archives, archive), this.root]);
    await rm(archives, { recursive: true });
  }

  /** The libraries these packages name as dependencies, without those already fetched. */
  async libraryDependencies(): Promise<readonly string[]> {
    const { stdout } = await this.#apt("apt-cache", ["depends", "--no-recommends", "--no-suggests", ...this.#fetched], this.#workshop);
    const lines = stdout.split("\n");
    // " |Depends: a" means "a, or else the next line": the first alternative is enough.
    const firstChoices = lines.filter((_, index) => lines[index - 1]?.startsWith(" |Depends") !== true);
    const names = firstChoices.map((line) => /^ [ |]Depends: ((?:lib|lua)[\w.+-]+)/.exec(line)?.[1]);
    return [...new Set(names)].filter((name) => name !== undefined && !neverBundled.has(name) && !this.#fetched.has(name)) as string[];
  }

  async tidy(): Promise<void> {
    for (const part of ["cache", "state", "lists", "root/usr/share", "root/etc", "root/var"]) {
      await rm(join(this.#workshop, part), { recursive: true, force: true });
    }
  }

  /** Resolves to the first complaint: apt-get ends well even when it could not fetch a list. */
  async #updatePrivateLists(): Promise<string | undefined> {
    const lists = join(this.#workshop, "lists");
    await mkdir(join(lists, "partial"), { recursive: true });
    this.#lists = ["-o", `Dir::State::lists=${lists}`];
    return firstComplaint((await this.#apt("apt-get", ["update"], this.#workshop)).stderr);
  }

  async #apt(command: "apt-get" | "apt-cache", args: readonly string[], cwd: string): Promise<Output> {
    const [cache, state] = [join(this.#workshop, "cache"), join(this.#workshop, "state")];
    await mkdir(join(cache, "archives", "partial"), { recursive: true });
    await mkdir(state, { recursive: true });
    const options = [
      `Dir::Cache=${cache}`,
      "Debug::NoLocking=1",
      "APT::Sandbox::User=root",
      "Acquire::Languages=none",
      "Acquire::Retries=2",
    ];
    const ownState = this.#lists.length === 0 ? [] : [`Dir::State=${state}`, "Dir::State::status=/var/lib/dpkg/status"];
    const flags = [...options, ...ownState].flatMap((option) => ["-o", option]);
    return this.#run(command, [...flags, ...this.#lists, "-q", ...args], cwd);
  }

  async #run(command: string, args: readonly string[], cwd = this.#workshop): Promise<Output> {
    try {
      return await run(command, [...args], { cwd, env: this.#env, timeout: commandTimeoutMs, maxBuffer: 16 * 1024 * 1024 });
    } catch (cause) {
      const { code, stderr = "", message } = cause as NodeJS.ErrnoException & { stderr?: string };
      if (code === "ENOENT") throw new Error(`${command} is not on PATH`, { cause });
      throw new Error(`${command} failed: ${firstComplaint(stderr) ?? message.split("\n")[0]}`, { cause });
    }
  }
}

function firstComplaint(stderr: string): string | undefined {
  return stderr.split("\n").find((line) => /^(E:|W:|dpkg)/.test(line));
}

// Level by level, until the loader finds everything: most machines lack only what redis-server names itself.
async function addMissingLibraries(apt: PrivateApt): Promise<void> {
  for (let level = 0; level < 4; level += 1) {
    if ((await missingLibraries(apt.root)).length === 0) return;
    const wanted = await apt.libraryDependencies();
    if (wanted.length === 0) break;
    await apt.fetch(wanted);
  }
  const missing = await missingLibraries(apt.root);
  if (missing.length > 0) throw new Error(`no package brings ${missing.join(", ")}`);
}

async function missingLibraries(root: string): Promise<readonly string[]> {
  const { binary, libraryPath } = await unpacked(root);
  const { stdout } = await run("ldd", [binary], { env: { ...process.env, LD_LIBRARY_PATH: libraryPath }, timeout: commandTimeoutMs });
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => match[1] ?? "");
}

async function unpacked(root: string): Promise<UnpackedRedis> {
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  // Versioned libraries only: the plug-ins beside them are nobody's to preload.
  const folders = files.filter((file) => /\.so\.\d/.test(file.name)).map((file) => file.parentPath);
  return { binary: join(root, "usr", "bin", "redis-server"), libraryPath: [...new Set(folders)].join(":") };
}
