// Fetches redis-server and the libraries it lacks from the distribution's packages, without root.
// Nothing is installed: the packages are unpacked into the cache folder and used from there.
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtOnce } from "./built-once.js";
import { distribution } from "./distribution.js";
import { type Environment, PrivateApt } from "./private-apt.js";

const run = promisify(execFile);
const LDD_TIMEOUT_MS = 10_000;

export interface UnpackedRedis {
  readonly binary: string;
  readonly libraryPath: string;
}

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

// Level by level, until the loader finds everything: most machines lack only what redis-server
// names itself.
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
  const options = { env: { ...process.env, LD_LIBRARY_PATH: libraryPath }, timeout: LDD_TIMEOUT_MS };
  // No dynamic program; whether it runs is tried next.
  const { stdout } = await run("ldd", [binary], options).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => match[1] ?? "");
}

async function unpacked(root: string): Promise<UnpackedRedis> {
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  // Versioned libraries only: plug-ins beside them are not meant for the loader.
  const folders = files.filter((file) => /\.so\.\d/.test(file.name)).map((file) => file.parentPath);
  return { binary: join(root, "usr", "bin", "redis-server"), libraryPath: [...new Set(folders)].join(":") };
}
