// Compiles the clock library once per machine, where a compiler is to be had. It must not fail a fleet that never moves a clock: it says why there is none.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { builtOnce } from "../resolve/built-once.js";
import { distribution } from "../resolve/distribution.js";
import { shimSource } from "./shim-source.js";

const run = promisify(execFile);

export const shimFile = "palisade-clock.so";

export type ClockShim = { readonly folder: string } | { readonly missing: string };

let compiled: Promise<ClockShim> | undefined;

/** The folder with the library, or the reason why there is none on this machine. */
export function clockShim(): Promise<ClockShim> {
  compiled ??= process.platform === "linux" ? compile() : Promise.resolve({ missing: "the clock library is made for Linux" });
  return compiled;
}

async function compile(): Promise<ClockShim> {
  const fingerprint = createHash("sha256").update(shimSource).digest("hex").slice(0, 12);
  const compilers = [process.env.CC, "cc", "gcc", "clang"].filter((name) => name !== undefined && name !== "") as string[];
  try {
    const folder = await builtOnce(`clock-${await distribution()}-${fingerprint}`, async (workshop) => {
      const source = join(workshop, "palisade-clock.c");
      await writeFile(source, shimSource);
      await compileWithAny(compilers, ["-shared", "-fPIC", "-O2", "-o", join(workshop, shimFile), source, "-ldl"]);
    });
    return { folder };
  } catch (cause) {
    return { missing: (cause as Error).message };
  }
}

async function compileWithAny(compilers: readonly string[], args: readonly string[]): Promise<void> {
  const complaints: string[] = [];
  for (const compiler of compilers) {
    try {
      await run(compiler, [...args], { timeout: 60_000 });
      return;
    } catch (cause) {
      const { code, message } = cause as NodeJS.ErrnoException;
      complaints.push(`${compiler}: ${code === "ENOENT" ? "not on PATH" : message.trim()}`);
    }
  }
  throw new Error(`no C compiler works (${complaints.join("; ")}); sudo apt-get install gcc libc6-dev helps`);
}
