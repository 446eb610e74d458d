// The wall clock of one server: a file with an offset that the process maps into memory, by a library
// that is compiled once per machine, with a compiler on PATH or with tcc from the distribution's
// packages. A machine with neither gets the reason, because most fleets never move a clock.
import { createHash } from "node:crypto";
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { endianness } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cached, distribution, type Environment, run } from "../programs/cache.js";
import { fetchPackages, unpackedIn } from "../programs/packages.js";

export const SHIM_FILE = "palisade-clock.so";
const COMPILE_TIMEOUT_MS = 60_000;
const source = fileURLToPath(new URL("../../src/clock/palisade-clock.c", import.meta.url));

type ClockShim = { readonly folder: string } | { readonly missing: string };

let compiled: Promise<ClockShim> | undefined;

/** The folder with the library, or the reason why there is none on this machine. */
export function clockShim(): Promise<ClockShim> {
  compiled ??= process.platform === "linux" ? compile(process.env) : Promise.resolve({ missing: "the clock library is made for Linux" });
  return compiled;
}

/** As `clockShim`, for the given environment, and looked for anew. */
export async function compile(env: Environment): Promise<ClockShim> {
  const fingerprint = createHash("sha256")
    .update(await readFile(source))
    .digest("hex")
    .slice(0, 12);
  const build = async (content: string): Promise<void> => {
    const args = ["-shared", "-fPIC", "-O2", "-nostdlib", "-o", join(content, SHIM_FILE), source];
    const complaints: string[] = [];
    const named = [env.CC, "cc", "gcc", "clang", "tcc"].flatMap((name) => (name ? [async () => name] : []));
    for (const compiler of [...named, () => fetchTcc(content, env)]) {
      try {
        await run(await compiler(), args, { env, timeout: COMPILE_TIMEOUT_MS });
        return;
      } catch (cause) {
        const { code, path, message } = cause as NodeJS.ErrnoException;
        complaints.push(code === "ENOENT" ? `${path} is not on PATH` : message.trim());
      }
    }
    throw new Error(`no C compiler works (${complaints.join("; ")}); installing gcc, clang or tcc helps`);
  };
  try {
    return { folder: await cached({ name: `clock-${await distribution()}-${fingerprint}`, build, env }) };
  } catch (cause) {
    return { missing: (cause as Error).message };
  }
}

/** A compiler of 300 kB that needs no other package to make a library that links nothing. */
async function fetchTcc(folder: string, env: Environment): Promise<string> {
  const tcc = { what: "C compiler", packages: ["tcc"], path: "usr/bin/tcc" };
  await fetchPackages(folder, tcc, env);
  return (await unpackedIn(folder, tcc)).binary;
}

export class WallClock {
  readonly #file: string;
  readonly #libraryFolder: string;
  #offsetMs = 0;

  private constructor(file: string, libraryFolder: string) {
    this.#file = file;
    this.#libraryFolder = libraryFolder;
    this.#write();
  }

  /** A clock whose offset lives in the file, or the reason why this machine cannot move clocks. */
  static async in(file: string): Promise<WallClock | { readonly missing: string }> {
    const shim = await clockShim();
    return "missing" in shim ? shim : new WallClock(file, shim.folder);
  }

  get offsetMs(): number {
    return this.#offsetMs;
  }

  /** Moves the clock by so much from where it is now. */
  shift(byMs: number): void {
    if (!Number.isInteger(byMs)) throw new RangeError(`a clock is moved by whole milliseconds, not by ${byMs}`);
    this.#offsetMs += byMs;
    this.#write();
  }

  /** For the server only. LD_PRELOAD cannot hold a space, so it names the file alone. */
  environment(libraryPath: string): Record<string, string> {
    const { LD_PRELOAD = "", LD_LIBRARY_PATH = "" } = process.env;
    const joined = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join(":");
    return {
      PALISADE_CLOCK_FILE: this.#file,
      LD_PRELOAD: joined(SHIM_FILE, LD_PRELOAD),
      LD_LIBRARY_PATH: joined(this.#libraryFolder, libraryPath, LD_LIBRARY_PATH),
    };
  }

  // Written in place, in one call, so that the process sees the old offset or the new one.
  #write(): void {
    const bytes = Buffer.alloc(8);
    if (endianness() === "LE") bytes.writeBigInt64LE(BigInt(this.#offsetMs));
    else bytes.writeBigInt64BE(BigInt(this.#offsetMs));
    const file = openSync(this.#file, constants.O_RDWR | constants.O_CREAT);
    try {
      writeSync(file, bytes, 0, bytes.length, 0);
    } finally {
      closeSync(file);
    }
  }
}
