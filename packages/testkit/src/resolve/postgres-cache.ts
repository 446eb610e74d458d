// Decides where prepared Postgres files (runnable binaries, empty data directories) are kept between runs, and publishes them so that any number of
// processes may prepare the same entry at once. It must not hand out an entry that is half written or half deleted.
import { execFile } from "node:child_process";
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

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

/** A folder with a known name below /tmp may have been planted by another user: it has to be a real folder, ours, and closed to their writes. */
async function usable(directory: string, account: Account | undefined): Promise<boolean> {
  try {
    await mkdir(directory, { recursive: true, mode: account === undefined ? 0o700 : 0o755 });
    const entry = await lstat(directory);
    const ours = entry.isDirectory() && entry.uid === (process.getuid?.() ?? entry.uid) && (entry.mode & 0o022) === 0;
    if (!ours || !(await reachableBy(directory, account))) return false;
    await rm(await mkdtemp(join(directory, ".writable-")), { recursive: true });
    return true;
  } catch {
    return false; // A folder we cannot make or look at is simply not usable; the caller tries the next one.
  }
}

function candidates(account: Account | undefined): string[] {
  const wanted = process.env.PALISADE_CACHE_DIR;
  if (wanted !== undefined && wanted !== "") return [wanted];
  const temporary = [...new Set([tmpdir(), "/tmp", "/var/tmp"])].map((root) =>
    join(root, `palisade-cache-${process.getuid?.() ?? "user"}`),
  );
  if (account !== undefined) return ["/var/cache/palisade", ...temporary];
  return [join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "palisade"), ...temporary];
}

/** The folder that survives between runs. A read-only HOME or a private one is no obstacle: the temporary folders come next. */
export async function cacheFolder(account: Account | undefined): Promise<string> {
  const tried = candidates(account);
  for (const directory of tried) if (await usable(directory, account)) return directory;
  throw new Error(
    `No folder to keep prepared Postgres files in: tried ${tried.join(", ")}. Set PALISADE_CACHE_DIR to a folder that can be written${account === undefined ? "" : ` and that uid ${account.uid} can enter`}.`,
  );
}

async function countEntries(directory: string): Promise<number> {
  return (await readdir(directory, { recursive: true })).length;
}

/** Folders below /tmp are thinned out by age, file by file, so an entry counts only while it still has all of its files. */
async function complete(entry: string): Promise<boolean> {
  try {
    return Number(await readFile(join(entry, "entries"), "utf8")) === (await countEntries(join(entry, "content")));
  } catch {
    return false; // Missing or unreadable is not complete; the caller builds it again.
  }
}

/** Puts a finished draft in its place unless another process was faster; then theirs is as good. */
async function publish(draft: string, entry: string): Promise<void> {
  try {
    await rename(draft, entry);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    await rm(draft, { recursive: true, force: true });
  }
}

/** A damaged entry steps aside before it is deleted. If another process has just replaced it by a whole one, that one is put back. */
async function stepAside(entry: string): Promise<void> {
  const aside = await mkdtemp(`${entry}-damaged-`);
  const moved = join(aside, "entry");
  await rename(entry, moved).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error; // Not there: nothing is damaged.
  });
  if (await complete(moved)) await publish(moved, entry);
  await rm(aside, { recursive: true, force: true });
}

export interface CacheEntry {
  readonly name: string;
  readonly account: Account | undefined;
  readonly fill: (content: string) => Promise<void>;
}

/** The content folder of an entry, filled first when it is not there. Two processes that fill at once both succeed: a rename decides whose is kept. */
export async function cached({ name, account, fill }: CacheEntry): Promise<string> {
  const root = await cacheFolder(account);
  const entry = join(root, name);
  if (await complete(entry)) return join(entry, "content");
  const draft = await mkdtemp(`${entry}-draft-`);
  try {
    if (account !== undefined) await chmod(draft, 0o755);
    const content = join(draft, "content");
    await mkdir(content);
    await fill(content);
    await writeFile(join(draft, "entries"), String(await countEntries(content)));
    if (!(await complete(entry))) await stepAside(entry);
    await publish(draft, entry);
    return join(entry, "content");
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}
