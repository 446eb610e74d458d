// Keeps what was built or downloaded for this machine, so that it happens once: in the clone's
// node_modules, or in a temporary folder where that cannot be used. A half-built entry is never
// seen: an entry is built under another name and renamed, and of two builders at once the first
// wins.
import { access, chmod, constants, lstat, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { arch, platform, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { keepFolder, removeFolderAtExit } from "../process/living-children.js";

const ABANDONED_AFTER_MS = 600_000;

/**
 * The folder called `name`, built by `build` in a folder of its own if no earlier run has left it.
 * `PALISADE_CACHE_DIR` says where it must be.
 */
export async function builtOnce(
  name: string,
  build: (folder: string) => Promise<void>,
  home = process.env.PALISADE_CACHE_DIR,
): Promise<string> {
  const homes = home ? [home] : await cacheHomes();
  for (const home of homes) {
    if (await isThere(join(home, name))) return join(home, name);
  }
  const refusals: string[] = [];
  for (const home of homes) {
    const workshop = await openWorkshop(home, name);
    if (workshop instanceof Error) refusals.push(workshop.message);
    else return finish(workshop, { home, name, build });
  }
  const demand = "can be written and that lets programs run";
  throw new Error(`nowhere to keep ${name}: ${refusals.join("; ")}; set PALISADE_CACHE_DIR to a folder that ${demand}`);
}

interface Entry {
  readonly home: string;
  readonly name: string;
  readonly build: (folder: string) => Promise<void>;
}

async function finish(workshop: string, { home, name, build }: Entry): Promise<string> {
  const final = join(home, name);
  try {
    await build(workshop);
    // mkdtemp makes it private; another user of the same clone may read it.
    await chmod(workshop, 0o755);
    await rename(workshop, final);
  } catch (cause) {
    await rm(workshop, { recursive: true, force: true });
    // Another builder was first; its entry is as good as ours.
    if (!["ENOTEMPTY", "EEXIST"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
  } finally {
    keepFolder(workshop);
  }
  return final;
}

async function openWorkshop(home: string, name: string): Promise<string | Error> {
  try {
    await mkdir(home, { recursive: true });
    const workshop = await mkdtemp(join(home, `.${name}-`));
    removeFolderAtExit(workshop);
    await sweepAbandoned(home, name);
    if (await letsProgramsRun(workshop)) return workshop;
    await rm(workshop, { recursive: true });
    return new Error(`${home} does not let programs run`);
  } catch (cause) {
    return cause as Error;
  }
}

/** False on a file system mounted noexec, which access(2) knows. The folder must be writable. */
export async function letsProgramsRun(folder: string): Promise<boolean> {
  const probe = join(await mkdtemp(join(folder, ".probe-")), "program");
  try {
    await writeFile(probe, "");
    await chmod(probe, 0o755);
    return await access(probe, constants.X_OK).then(
      () => true,
      () => false,
    );
  } finally {
    await rm(dirname(probe), { recursive: true });
  }
}

// A builder that was killed leaves its workshop behind.
async function sweepAbandoned(home: string, name: string): Promise<void> {
  for (const entry of await readdir(home)) {
    if (!entry.startsWith(`.${name}-`)) continue;
    const path = join(home, entry);
    // Gone meanwhile: finished by its builder.
    const found = await stat(path).catch(() => undefined);
    if (found !== undefined && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS) await rm(path, { recursive: true, force: true });
  }
}

/** Where entries may live, best first. */
export async function cacheHomes(): Promise<readonly string[]> {
  const clone = await cloneFolder(dirname(fileURLToPath(import.meta.url)));
  const homes = clone === undefined ? [] : [join(clone, "node_modules", ".cache", "palisade")];
  // First the one that outlives this run, and the machine's next start.
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
  return stat(path).then(
    () => true,
    () => false,
  );
}

// Names the system that binaries are built or fetched for, because one clone may be used from
// several.
/** For example debian12-x64. */
export async function distribution(): Promise<string> {
  // Not Linux, or a bare one.
  const text = await readFile("/etc/os-release", "utf8").catch(() => "");
  const field = (name: string): string => new RegExp(`^${name}="?([\\w.-]+)`, "m").exec(text)?.[1] ?? "";
  return `${field("ID") || platform()}${field("VERSION_ID")}-${arch()}`;
}
