// Compiles the clock library once per machine: with a compiler on PATH, else with tcc from the
// distribution's packages. A machine with neither gets the reason, because a fleet that never moves
// a clock does not need the library.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtOnce, distribution } from "../resolve/built-once.js";
import { PrivateApt } from "../resolve/private-apt.js";
import { shimSource } from "./shim-source.js";

const run = promisify(execFile);
const COMPILE_TIMEOUT_MS = 60_000;

export const SHIM_FILE = "palisade-clock.so";

type ClockShim = { readonly folder: string } | { readonly missing: string };

let compiled: Promise<ClockShim> | undefined;

/** The folder with the library, or the reason why there is none on this machine. */
export function clockShim(): Promise<ClockShim> {
  compiled ??= process.platform === "linux" ? compile(process.env) : Promise.resolve({ missing: "the clock library is made for Linux" });
  return compiled;
}

/** As `clockShim`, for the given environment, and looked for anew. */
export async function compile(env: NodeJS.ProcessEnv): Promise<ClockShim> {
  const fingerprint = createHash("sha256").update(shimSource).digest("hex").slice(0, 12);
  const build = async (workshop: string): Promise<void> => {
    const source = join(workshop, "palisade-clock.c");
    await writeFile(source, shimSource);
    await compileWithAny({ env, workshop, args: ["-shared", "-fPIC", "-O2", "-nostdlib", "-o", join(workshop, SHIM_FILE), source] });
  };
  try {
    return { folder: await builtOnce(`clock-${await distribution()}-${fingerprint}`, build, env.PALISADE_CACHE_DIR) };
  } catch (cause) {
    return { missing: (cause as Error).message };
  }
}

interface Compilation {
  readonly env: NodeJS.ProcessEnv;
  readonly workshop: string;
  readonly args: readonly string[];
}

async function compileWithAny({ env, workshop, args }: Compilation): Promise<void> {
  const complaints: string[] = [];
  const named = [env.CC, "cc", "gcc", "clang", "tcc"].filter((name) => name !== undefined && name !== "") as string[];
  for (const compiler of [...named.map((name) => async () => name), () => fetchTcc(workshop, env)]) {
    try {
      await run(await compiler(), [...args], { env, timeout: COMPILE_TIMEOUT_MS });
      return;
    } catch (cause) {
      const { code, path, message } = cause as NodeJS.ErrnoException;
      complaints.push(code === "ENOENT" ? `${path} is not on PATH` : message.trim());
    }
  }
  throw new Error(`no C compiler works (${complaints.join("; ")}); installing gcc, clang or tcc helps`);
}

/** A compiler of 300 kB that needs no other package to make a library that links nothing. */
async function fetchTcc(workshop: string, env: NodeJS.ProcessEnv): Promise<string> {
  const apt = new PrivateApt(workshop, env);
  await apt.mustBeThere();
  process.stderr.write("no C compiler is installed: fetching tcc from the distribution's packages, without root (once)\n");
  await apt.fetch(["tcc"]);
  await apt.tidy();
  return join(apt.root, "usr", "bin", "tcc");
}
