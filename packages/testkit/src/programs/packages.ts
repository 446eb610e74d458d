// Programs from the distribution's packages without root: apt-get with all its state in a folder of
// ours, and packages that are unpacked there, with the libraries that this machine lacks. The
// system's package state is neither locked nor changed.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Environment, run } from "./cache.js";

const COMMAND_TIMEOUT_MS = 120_000;
// The C library and its loader must stay the system's own: two versions in one process crash.
const neverBundled = new Set(["libc6", "libc-bin", "libgcc-s1", "libcrypt1"]);

export interface Packaged {
  /** For the notice: "Redis server". */
  readonly what: string;
  readonly packages: readonly string[];
  /** Where the packages put it, from the root of the system. */
  readonly path: string;
  /** What it needs of /usr/share at run time. */
  readonly kept?: readonly string[];
}

export interface Unpacked {
  readonly binary: string;
  readonly libraryPath: string;
}

/** Into the folder; `unpackedIn` finds the program there again. */
export async function fetchPackages(folder: string, program: Packaged, env: Environment): Promise<void> {
  const apt = new PrivateApt(folder, env);
  for (const command of ["apt-get", "dpkg"]) await apt.run(command, ["--version"]);
  process.stderr.write(`no ${program.what} is installed: fetching the distribution's package, without root (once)\n`);
  await apt.fetch(program.packages);
  // Level by level, until the loader finds everything: most machines lack only what the program
  // names itself.
  for (let level = 0; ; level += 1) {
    const missing = await missingLibraries(await unpackedIn(folder, program));
    if (missing.length === 0) break;
    const wanted = level < 4 ? await apt.libraryDependencies() : [];
    if (wanted.length === 0) throw new Error(`no package brings ${missing.join(", ")}`);
    await apt.fetch(wanted);
  }
  await apt.tidy(program.kept);
}

export async function unpackedIn(folder: string, { path }: Packaged): Promise<Unpacked> {
  const root = join(folder, "root");
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  // Versioned libraries only: plug-ins beside them are not meant for the loader.
  const folders = files.filter((file) => /\.so\.\d|-\d[\d.]*\.so$/.test(file.name)).map((file) => file.parentPath);
  return { binary: join(root, path), libraryPath: [...new Set(folders)].join(":") };
}

async function missingLibraries({ binary, libraryPath }: Unpacked): Promise<readonly string[]> {
  const options = { env: { ...process.env, LD_LIBRARY_PATH: libraryPath }, timeout: 10_000 };
  // No dynamic program; whether it runs is tried next.
  const { stdout } = await run("ldd", [binary], options).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => match[1] ?? "");
}

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

class PrivateApt {
  readonly #folder: string;
  readonly #env: Environment;
  #lists: readonly string[] = [];
  readonly #fetched = new Set<string>();

  constructor(folder: string, env: Environment) {
    this.#folder = folder;
    this.#env = { ...env, LC_ALL: "C" };
  }

  /** Downloads and unpacks; with package lists of our own when the system's do not serve. */
  async fetch(packages: readonly string[]): Promise<void> {
    const archives = join(this.#folder, "archives");
    await mkdir(archives, { recursive: true });
    const download = (): Promise<Output> => this.#apt("apt-get", ["download", ...packages], archives);
    await download().catch(async (cause: Error) => {
      if (this.#lists.length > 0) throw cause;
      const lists = join(this.#folder, "lists");
      await mkdir(join(lists, "partial"), { recursive: true });
      this.#lists = [`Dir::State::lists=${lists}`, `Dir::State=${join(this.#folder, "state")}`, "Dir::State::status=/var/lib/dpkg/status"];
      // apt-get ends well even when it could not fetch a list.
      const warning = firstComplaint((await this.#apt("apt-get", ["update"])).stderr);
      await download().catch((again: Error) => {
        throw warning === undefined ? again : new Error(`${again.message}, after apt-get update: ${warning}`, { cause: again });
      });
    });
    for (const name of packages) this.#fetched.add(name);
    for (const archive of await readdir(archives)) await this.run("dpkg", ["-x", join(archives, archive), join(this.#folder, "root")]);
    await rm(archives, { recursive: true });
  }

  /** The libraries these packages name as dependencies, without those already fetched. */
  async libraryDependencies(): Promise<readonly string[]> {
    const { stdout } = await this.#apt("apt-cache", ["depends", "--no-recommends", "--no-suggests", ...this.#fetched]);
    const lines = stdout.split("\n");
    // " |Depends: a" means "a, or else the next line": the first alternative is enough.
    const firstChoices = lines.filter((_, index) => lines[index - 1]?.startsWith(" |Depends") !== true);
    const names = firstChoices.flatMap((line) => /^ [ |]Depends: ((?:lib|lua)[\w.+-]+)/.exec(line)?.[1] ?? []);
    return [...new Set(names)].filter((name) => !neverBundled.has(name) && !this.#fetched.has(name));
  }

  /** Removes what no program needs at run time, but for some folders of /usr/share. */
  async tidy(kept: readonly string[] = []): Promise<void> {
    const shared = await readdir(join(this.#folder, "root/usr/share")).catch((): string[] => []);
    const unneeded = shared.filter((name) => !kept.includes(name)).map((name) => `root/usr/share/${name}`);
    for (const part of ["cache", "state", "lists", ...unneeded, "root/etc", "root/var"])
      await rm(join(this.#folder, part), { recursive: true, force: true });
  }

  async #apt(command: "apt-get" | "apt-cache", args: readonly string[], cwd = this.#folder): Promise<Output> {
    for (const part of ["cache/archives/partial", "state"]) await mkdir(join(this.#folder, part), { recursive: true });
    const own = [`Dir::Cache=${join(this.#folder, "cache")}`, "Debug::NoLocking=1", "APT::Sandbox::User=root"];
    const options = [...own, "Acquire::Languages=none", "Acquire::Retries=2", ...this.#lists];
    return this.run(command, [...options.flatMap((option) => ["-o", option]), "-q", ...args], cwd);
  }

  async run(command: string, args: readonly string[], cwd = this.#folder): Promise<Output> {
    try {
      return await run(command, [...args], { cwd, env: this.#env, timeout: COMMAND_TIMEOUT_MS, maxBuffer: 16 * 1024 * 1024 });
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
