// The distribution's packages without root: apt-get with all its state in a folder of ours, and
// packages that are unpacked there. The system's package state is neither locked nor changed.
import { execFile } from "node:child_process";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const COMMAND_TIMEOUT_MS = 120_000;
// The C library and its loader must stay the system's own: two versions in one process crash.
const neverBundled = new Set(["libc6", "libc-bin", "libgcc-s1", "libcrypt1"]);

interface Output {
  readonly stdout: string;
  readonly stderr: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export class PrivateApt {
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

  /** Downloads and unpacks; with package lists of our own when the system's do not serve. */
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

  /** Removes what no program needs at run time, but for some folders of /usr/share. */
  async tidy(kept: readonly string[] = []): Promise<void> {
    const shared = await readdir(join(this.root, "usr/share")).catch((): string[] => []);
    const unneeded = shared.filter((name) => !kept.includes(name)).map((name) => `root/usr/share/${name}`);
    for (const part of ["cache", "state", "lists", ...unneeded, "root/etc", "root/var"])
      await rm(join(this.#workshop, part), { recursive: true, force: true });
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
