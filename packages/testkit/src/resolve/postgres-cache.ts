// Keeps prepared Postgres files (runnable binaries, empty clusters) between runs, in a place that the server's account can enter. It must not hand out an entry
// that has lost some of its files.
import { execFile } from "node:child_process";
import { access, chmod, constants, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { builtOnce, cacheHomes } from "./built-once.js";

export const run = promisify(execFile);

/** The user a server runs as. Postgres refuses to run as root, so root lends it the account nobody; everyone else runs it as themselves. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export function serverAccount(): Account | undefined {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;
}

/** Every folder on the way down must let strangers pass; a root whose home is 0700 has a clone that nobody cannot enter. */
export async function reachableBy(directory: string, account: Account | undefined): Promise<boolean> {
  if (account === undefined) return true;
  for (let path = await realpath(directory); ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

async function usable(home: string, account: Account | undefined): Promise<boolean> {
  try {
    const made = await mkdir(home, { recursive: true });
    if (made !== undefined && account !== undefined) await chmod(home, 0o755); // Whatever the umask says.
    await access(home, constants.W_OK);
    return await reachableBy(home, account);
  } catch {
    return false; // A folder that cannot be made or written is not usable; there may be another.
  }
}

async function cacheHome(account: Account | undefined): Promise<string> {
  const wanted = process.env.PALISADE_CACHE_DIR;
  const tried = wanted ? [wanted] : await cacheHomes();
  for (const home of tried) if (await usable(home, account)) return home;
  const demand = account === undefined ? "can be written" : `can be written and that uid ${account.uid} can enter`;
  throw new Error(`nowhere to keep prepared Postgres files: tried ${tried.join(", ")}. Set PALISADE_CACHE_DIR to a folder that ${demand}.`);
}

async function countFiles(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true })).length;
}

/** Temporary folders are thinned out by age, file by file, so an entry counts only while it still has all of its files. */
async function isWhole(entry: string): Promise<boolean> {
  try {
    return Number(await readFile(join(entry, "files"), "utf8")) === (await countFiles(join(entry, "content")));
  } catch {
    return false; // What cannot be read is not whole.
  }
}

/** Out of the way before it is deleted, so that nobody sees it shrink. If another process has just replaced it by a whole one, that one is put back. */
async function removeDamaged(entry: string): Promise<void> {
  const aside = await mkdtemp(`${entry}-damaged-`);
  const moved = join(aside, "entry");
  await rename(entry, moved).catch(onlyIf("ENOENT")); // Somebody else has moved it.
  if (await isWhole(moved)) await rename(moved, entry).catch(onlyIf("ENOTEMPTY", "EEXIST")); // Or has built yet another one.
  await rm(aside, { recursive: true, force: true });
}

function onlyIf(...expected: readonly string[]): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (!expected.includes(error.code ?? "")) throw error;
  };
}

export interface Preparation {
  readonly name: string;
  readonly account: Account | undefined;
  readonly fill: (content: string) => Promise<void>;
}

/** The folder that `fill` has filled, now or in an earlier run. */
export async function prepared({ name, account, fill }: Preparation): Promise<string> {
  const home = await cacheHome(account);
  const build = async (folder: string): Promise<void> => {
    if (account !== undefined) await chmod(folder, 0o755); // The account works in there.
    const content = join(folder, "content");
    await mkdir(content);
    if (account !== undefined) await chmod(content, 0o755);
    await fill(content);
    await writeFile(join(folder, "files"), String(await countFiles(content)));
  };
  const entry = await builtOnce(name, build, home);
  if (await isWhole(entry)) return join(entry, "content");
  await removeDamaged(entry);
  return join(await builtOnce(name, build, home), "content");
}
