// The control of the soak: a client that does one thing wrong with every operation, as real clients do. What the judge does not find here, it would not find
// anywhere.
import { openSync } from "node:fs";
import type { Leak } from "./client-words.js";
import type { Tools } from "./tools-of-work.js";

/** A body that somebody keeps. */
const BYTES = 32_768;
/** One forgotten file for every other operation, and an end before the machine's. */
const OPERATIONS_PER_FILE = 2;
const MOST_FILES = 5_000;

/** What to do after every operation. */
export function leakOf(leak: Leak, tools: Tools): () => void {
  switch (leak) {
    case "memory": {
      const kept: Buffer[] = [];
      return () => kept.push(Buffer.alloc(BYTES, 1));
    }
    case "timers":
      return () => setInterval(() => {}, 3_600_000);
    case "listeners":
      return () => tools.shutdown.signal.addEventListener("abort", () => tools.waiting);
    case "files": {
      let operations = 0;
      return () => {
        operations++;
        if (operations % OPERATIONS_PER_FILE === 0 && operations < OPERATIONS_PER_FILE * MOST_FILES) openSync(process.execPath, "r");
      };
    }
  }
}
