// Gives back the small System V memory segment that every postmaster takes and only a postmaster
// that ends by itself returns. The system has room for a few thousand (macOS: 32), and each killed
// test run would cost one. A segment whose maker lives, or that a process has attached, stays.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { isRunning } from "../process/process-state.js";

const run = promisify(execFile);

/** Postgres keeps nothing but the header of its interlock in there; the buffers are elsewhere. */
const INTERLOCK_BYTES = 56;

let swept: Promise<void> | undefined;

/** Once per process: removes segments left by killed servers of this account (ours by default). */
export function sweepAbandonedMemory(uid: number | undefined): Promise<void> {
  swept ??= sweep(uid ?? process.getuid?.());
  return swept;
}

async function sweep(uid: number | undefined): Promise<void> {
  // Only Linux shows it; elsewhere nothing can be swept.
  const table = await readFile("/proc/sysvipc/shm", "utf8").catch(() => "");
  const [header = "", ...rows] = table.trim().split("\n");
  const names = header.trim().split(/\s+/);
  for (const row of rows) {
    const fields = row.trim().split(/\s+/);
    const field = (name: string): number => Number(fields[names.indexOf(name)]);
    const ours = field("uid") === uid && field("size") === INTERLOCK_BYTES && field("nattch") === 0;
    if (ours && !isRunning(String(field("cpid")))) await run("ipcrm", ["-m", String(field("shmid"))]).catch(leftForLater);
  }
}

/** Another process sweeps as well, or there is no ipcrm; a later run sweeps these 56 bytes. */
function leftForLater(): "left" {
  return "left";
}
