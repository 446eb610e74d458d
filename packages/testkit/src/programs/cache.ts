// Keeps what was built, copied or downloaded for this machine, so that it happens once: in the
// clone's node_modules, or in a temporary folder where that cannot be used. A half-built entry is
// never seen: it is built under another name and renamed, and of two builders at once the first wins.
import { execFile } from "node:child_process";
import { access, chmod, constants, lstat, mkdir, mkdtemp, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { scratchFolder } from "../process/orphans.js";

export const run = promisify(execFile);

export type Environment = Readonly<Record<string, string | undefined>>;

/** The user a server runs as. Postgres refuses root, so root runs servers as the account nobody. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export function serverAccount(): Account | undefined {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;
}

/** No folder can hold what is wanted, so that no other package would help. */
export class NoPlace extends Error {}

interface Entry {
  readonly name: string;
  /** Fills a folder of its own; the account may enter it. */
  readonly build: (content: string) => Promise<void>;
  /** Who has to reach the entry, beside us. */
  readonly account?: Account | undefined;
  /** `PALISADE_CACHE_DIR` says where entries must be. */
  readonly env?: Environment;
}

/** The folder of this name, built now or in an earlier run. */
export async function cached({ name, build, account, env = process.env }: Entry): Promise<string> {
  const refusals: string[] = [];
  for (const home of env.PALISADE_CACHE_DIR ? [env.PALISADE_CACHE_DIR] : await cacheHomes()) {
    const refusal = await unusable(home, account);
    if (refusal === undefined) {
      const entry = join(home, name);
      if (!(await isThere(entry))) await buildAs(entry, build);
      return join(entry, "content");
    }
    refusals.push(`${home} (${refusal})`);
  }
  const demand = `can be written, lets programs run${account === undefined ? "" : `, can be entered by uid ${account.uid}`}`;
  throw new NoPlace(
    `there is no folder for ${name}: tried ${refusals.join(", ")}; set PALISADE_CACHE_DIR to a folder that ${demand} and has a plain path`,
  );
}

async function buildAs(entry: string, build: Entry["build"]): Promise<void> {
  const workshop = scratchFolder("building", dirname(entry));
  const content = join(workshop, "content");
  try {
    await mkdir(content);
    // mkdtemp makes it private, and the umask may; the account works in there, and other users read it.
    for (const folder of [workshop, content]) await chmod(folder, 0o755);
    await build(content);
    await rename(workshop, entry).catch((error: NodeJS.ErrnoException) => {
      // Another builder may have been first; its entry is as good as ours.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(workshop, { recursive: true, force: true });
  }
}

/** Why entries cannot be kept there. initdb passes paths to a shell in double quotes. */
async function unusable(home: string, account: Account | undefined): Promise<string | undefined> {
  if (/["$`\\]/.test(home)) return 'initdb takes no path with ", $, ` or \\';
  try {
    const made = await mkdir(home, { recursive: true });
    if (made !== undefined && account !== undefined) await chmod(home, 0o755); // Whatever the umask says.
    if (!(await reachableBy(home, account))) return `uid ${account?.uid} cannot enter it`;
    return (await letsProgramsRun(home)) ? undefined : "it does not let programs run";
  } catch (error) {
    return `it cannot be written (${(error as NodeJS.ErrnoException).code})`;
  }
}

/** Every folder on the way must let other users pass; a 0700 home of root does not. */
export async function reachableBy(directory: string, account: Account | undefined): Promise<boolean> {
  if (account === undefined) return true;
  for (let path = await realpath(directory); ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

/** False on a file system mounted noexec, which access(2) knows. The folder must be writable. */
async function letsProgramsRun(folder: string): Promise<boolean> {
  const probe = join(await mkdtemp(join(folder, ".probe-")), "program");
  try {
    await writeFile(probe, "");
    await chmod(probe, 0o755);
    return await isExecutable(probe);
  } finally {
    await rm(dirname(probe), { recursive: true });
  }
}

export async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Where entries may live, best first: the one that outlives this run, and the machine's next start. */
async function cacheHomes(): Promise<readonly string[]> {
  const clone = await cloneFolder(dirname(fileURLToPath(import.meta.url)));
  const homes = clone === undefined ? [] : [join(clone, "node_modules", ".cache", "palisade")];
  for (const folder of new Set([(await isThere("/var/tmp")) ? "/var/tmp" : tmpdir(), tmpdir()])) {
    const home = join(folder, `palisade-cache-${process.getuid?.() ?? "user"}`);
    if (await mayTrust(home)) homes.push(home);
  }
  return homes;
}

async function cloneFolder(from: string): Promise<string | undefined> {
  if (await isThere(join(from, "pnpm-workspace.yaml"))) return from;
  return dirname(from) === from ? undefined : cloneFolder(dirname(from));
}

// Anyone may make a folder in /tmp under our name, and we run what lies in it.
async function mayTrust(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined); // not there yet: we will make it
  if (found === undefined) return true;
  return found.isDirectory() && (process.getuid === undefined || found.uid === process.getuid()) && (found.mode & 0o022) === 0;
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

/** For example debian12-x64: one clone may be used from several systems. */
export async function distribution(): Promise<string> {
  // Not Linux, or a bare one.
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  const field = (name: string): string => new RegExp(`^${name}="?([\\w.-]+)`, "m").exec(text)?.[1] ?? "";
  return `${field("ID") || platform()}${field("VERSION_ID")}-${arch()}`;
}
