// The wall clock of one server: a file with an offset that the process maps into memory.
import { closeSync, constants, openSync, writeSync } from "node:fs";
import { endianness } from "node:os";
import { clockShim, SHIM_FILE } from "./clock-shim.js";

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
  environment(libraryPath = ""): Record<string, string> {
    const { LD_PRELOAD = "", LD_LIBRARY_PATH = "" } = process.env;
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

function joined(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join(":");
}
