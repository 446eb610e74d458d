// The control of the soak: a client that leaks with every operation, as real clients do.
import { openSync } from "node:fs";
import type { Leak } from "../harness/messages.js";
import type { LoadTools } from "./load-tools.js";

/** The size of a body that is kept. */
const BYTES = 32_768;
/** One open file for every other operation, below the machine's limit. */
const OPERATIONS_PER_FILE = 2;
const MOST_FILES = 5_000;

/** What to do after every operation. */
export function leakOf(leak: Leak, tools: LoadTools): () => void {
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
