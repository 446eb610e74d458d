// Fetches a program and the libraries it lacks from the distribution's packages, without root.
// Nothing is installed: the packages are unpacked into a folder of ours and used from there.
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Environment, PrivateApt } from "./private-apt.js";

const run = promisify(execFile);
const LDD_TIMEOUT_MS = 10_000;

export interface UnpackedProgram {
  readonly binary: string;
  readonly libraryPath: string;
}

export interface PackagedProgram {
  /** For the notice: "Redis server". */
  readonly what: string;
  readonly packages: readonly string[];
  /** Where the packages put it, from the root of the system. */
  readonly path: string;
  /** What it needs of /usr/share at run time. */
  readonly kept?: readonly string[];
}

/** Into the folder `workshop`; `unpacked` finds it there again. */
export async function fetchPackages(workshop: string, program: PackagedProgram, env: Environment): Promise<void> {
  const apt = new PrivateApt(workshop, env);
  await apt.mustBeThere();
  process.stderr.write(`no ${program.what} is installed: fetching the distribution's package, without root (once)\n`);
  await apt.fetch(program.packages);
  await addMissingLibraries(apt, program);
  await apt.tidy(program.kept);
}

// Level by level, until the loader finds everything: most machines lack only what the program names
// itself.
async function addMissingLibraries(apt: PrivateApt, program: PackagedProgram): Promise<void> {
  for (let level = 0; level < 4; level += 1) {
    if ((await missingLibraries(apt.root, program)).length === 0) return;
    const wanted = await apt.libraryDependencies();
    if (wanted.length === 0) break;
    await apt.fetch(wanted);
  }
  const missing = await missingLibraries(apt.root, program);
  if (missing.length > 0) throw new Error(`no package brings ${missing.join(", ")}`);
}

async function missingLibraries(root: string, program: PackagedProgram): Promise<readonly string[]> {
  const { binary, libraryPath } = await unpackedIn(root, program);
  const options = { env: { ...process.env, LD_LIBRARY_PATH: libraryPath }, timeout: LDD_TIMEOUT_MS };
  // No dynamic program; whether it runs is tried next.
  const { stdout } = await run("ldd", [binary], options).catch(() => ({ stdout: "" }));
  return [...stdout.matchAll(/^\s*(\S+) => not found/gm)].map((match) => match[1] ?? "");
}

export async function unpacked(workshop: string, program: PackagedProgram): Promise<UnpackedProgram> {
  return await unpackedIn(join(workshop, "root"), program);
}

async function unpackedIn(root: string, { path }: PackagedProgram): Promise<UnpackedProgram> {
  const files = await readdir(root, { recursive: true, withFileTypes: true });
  // Versioned libraries only: plug-ins beside them are not meant for the loader.
  const folders = files.filter((file) => /\.so\.\d|-\d[\d.]*\.so$/.test(file.name)).map((file) => file.parentPath);
  return { binary: join(root, path), libraryPath: [...new Set(folders)].join(":") };
}
