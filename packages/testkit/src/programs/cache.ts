// Keeps what was built, copied or downloaded for this machine, so that it happens once, for all clones:
// in a folder that outlives this run, whose path is plain, and which the account of servers can enter.
// A half-built entry is never seen: it is built under another name and renamed, and of two builders at
// once the first wins.
import { execFile } from "node:child_process";
import { access, chmod, constants, lstat, mkdir, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";
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
  const own = `palisade-cache-${process.getuid?.() ?? "user"}`;
  const refusals: string[] = [];
  for (const home of env.PALISADE_CACHE_DIR ? [env.PALISADE_CACHE_DIR] : [join("/var/tmp", own), join(tmpdir(), own)]) {
    const refusal = await unusable(home, { account, isNamed: home === env.PALISADE_CACHE_DIR });
    if (refusal === undefined) {
      const entry = join(home, name);
      if ((await stat(entry).catch(() => undefined)) === undefined) await buildAs(entry, build);
      return join(entry, "content");
    }
    refusals.push(`${home} (${refusal})`);
  }
  throw new Error(`there is no folder for ${name}: tried ${refusals.join(", ")}; set PALISADE_CACHE_DIR to one that serves`);
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

interface Use {
  readonly account: Account | undefined;
  readonly isNamed: boolean;
}

/** Why entries cannot be kept there. initdb passes paths to a shell in double quotes. */
async function unusable(home: string, { account, isNamed }: Use): Promise<string | undefined> {
  if (/["$`\\]/.test(home)) return 'initdb takes no path with ", $, ` or \\';
  try {
    const made = await mkdir(home, { recursive: true });
    if (made !== undefined) await chmod(home, 0o755); // Whatever the umask says.
    await access(home, constants.W_OK);
    // Anyone may make a folder in /tmp under our name, and we run what lies in it.
    const { uid, mode } = await lstat(home);
    if (!isNamed && (uid !== process.getuid?.() || (mode & 0o022) !== 0)) return "others may write there";
    return (await reachableBy(home, account)) ? undefined : `uid ${account?.uid} cannot enter it`;
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

export async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** For example debian12-x64: one clone may be used from several systems. */
export async function distribution(): Promise<string> {
  // Not Linux, or a bare one.
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  const field = (name: string): string => new RegExp(`^${name}="?([\\w.-]+)`, "m").exec(text)?.[1] ?? "";
  return `${field("ID") || platform()}${field("VERSION_ID")}-${arch()}`;
}
