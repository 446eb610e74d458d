// Keeps prepared Postgres files (runnable binaries, empty clusters) between runs, in a place that
// the server's account can enter. An entry that has lost some of its files is made anew.
import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { builtOnce, cacheHomes, letsProgramsRun } from "./built-once.js";

export const run = promisify(execFile);

/** The user a server runs as. Postgres refuses root, so root runs it as the account nobody. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

export function serverAccount(): Account | undefined {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;
}

/** Every folder on the way must let other users pass; a 0700 home of root does not. */
export async function reachableBy(directory: string, account: Account | undefined): Promise<boolean> {
  if (account === undefined) return true;
  for (let path = await realpath(directory); ; path = dirname(path)) {
    if (((await stat(path)).mode & 0o001) === 0) return false;
    if (path === dirname(path)) return true;
  }
}

/** Why the server's files cannot be kept there. initdb passes paths to a shell in double quotes. */
async function unusable(home: string, account: Account | undefined): Promise<string | undefined> {
  if (/["$`\\]/.test(home)) return 'initdb takes no path with ", $, ` or \\';
  try {
    const made = await mkdir(home, { recursive: true });
    // Whatever the umask says.
    if (made !== undefined && account !== undefined) await chmod(home, 0o755);
    if (!(await reachableBy(home, account))) return `uid ${account?.uid} cannot enter it`;
    return (await letsProgramsRun(home)) ? undefined : "it does not let programs run";
  } catch (error) {
    return `it cannot be written (${(error as NodeJS.ErrnoException).code})`;
  }
}

/** No folder can hold the server's files, so no other Postgres package would help. */
export class NoPlaceForPostgres extends Error {}

async function cacheHome(account: Account | undefined): Promise<string> {
  const wanted = process.env.PALISADE_CACHE_DIR;
  const refusals: string[] = [];
  for (const home of wanted ? [wanted] : await cacheHomes()) {
    const refusal = await unusable(home, account);
    if (refusal === undefined) return home;
    refusals.push(`${home} (${refusal})`);
  }
  const demand = `can be written, lets programs run${account === undefined ? "" : `, can be entered by uid ${account.uid}`}`;
  throw new NoPlaceForPostgres(
    `Postgres has no folder to run from: tried ${refusals.join(", ")}; set PALISADE_CACHE_DIR to a folder that ${demand} and has a plain path.`,
  );
}

async function countFiles(folder: string): Promise<number> {
  return (await readdir(folder, { recursive: true })).length;
}

/** Temporary folders lose old files one by one, so an entry counts only while it has them all. */
async function isWhole(entry: string): Promise<boolean> {
  try {
    return Number(await readFile(join(entry, "files"), "utf8")) === (await countFiles(join(entry, "content")));
  } catch {
    return false; // What cannot be read is not whole.
  }
}

/**
 * Moved away before it is deleted, so that no other process sees it shrink. If another process has
 * just replaced it by a whole one, that one is put back.
 */
async function removeDamaged(entry: string): Promise<void> {
  const aside = await mkdtemp(`${entry}-damaged-`);
  const moved = join(aside, "entry");
  await rename(entry, moved).catch(onlyIf("ENOENT")); // Another process has moved it.
  // Or has built another one.
  if (await isWhole(moved)) await rename(moved, entry).catch(onlyIf("ENOTEMPTY", "EEXIST"));
  await rm(aside, { recursive: true, force: true });
}

function onlyIf(...expected: readonly string[]): (error: NodeJS.ErrnoException) => void {
  return (error) => {
    if (!expected.includes(error.code ?? "")) throw error;
  };
}

interface Preparation {
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
