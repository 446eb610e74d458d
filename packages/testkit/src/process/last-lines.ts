// Keeps the end of what a process wrote, in bounded size, so that an error can quote it.
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const LINES_KEPT = 200;
const BYTES_READ = 16_384;

/** A bounded memory of the last lines of a stream. */
export class LastLines {
  #lines: string[] = [];
  #unfinished = "";

  add(text: string, onLine?: (line: string) => void): void {
    const parts = (this.#unfinished + text).split("\n");
    this.#unfinished = (parts.pop() ?? "").slice(-BYTES_READ);
    for (const line of parts) onLine?.(line);
    this.#lines = [...this.#lines, ...parts].slice(-LINES_KEPT);
  }

  last(count: number): readonly string[] {
    const all = this.#unfinished === "" ? this.#lines : [...this.#lines, this.#unfinished];
    return all.slice(-count);
  }
}

/** The last lines of a log file; none when the file is not there. */
export function lastLinesOfFile(path: string, count: number): readonly string[] {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (cause) {
    return [`(${path} cannot be read: ${(cause as Error).message})`];
  }
  try {
    const size = fstatSync(file).size;
    const buffer = Buffer.alloc(Math.min(size, BYTES_READ));
    readSync(file, buffer, 0, buffer.length, size - buffer.length);
    return buffer
      .toString("utf8")
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-count);
  } finally {
    closeSync(file);
  }
}
