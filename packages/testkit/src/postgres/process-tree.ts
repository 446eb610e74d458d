// Signals a Postgres server as a whole. Every backend makes a session of its own, so a signal to
// the process group reaches only the postmaster; the tree has to be walked.
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { processState } from "../process/process-state.js";

interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
}

/** Linux by /proc, because slim images have no ps; elsewhere by ps. */
function processTable(): ProcessEntry[] {
  if (process.platform !== "linux") {
    const table = execFileSync("ps", ["-A", "-o", "pid=,ppid=,state="], { encoding: "utf8" });
    return table.split("\n").flatMap((line) => {
      const [pid, parent, state] = line.trim().split(/\s+/);
      return state === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), state: state.slice(0, 1) }];
    });
  }
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const found = processState(name);
      return found === undefined ? [] : [{ pid: Number(name), ...found }];
    });
}

function descendants(root: number): number[] {
  const table = processTable();
  const found = [root];
  for (let index = 0; index < found.length; index += 1) {
    for (const entry of table) if (entry.parent === found[index]) found.push(entry.pid);
  }
  return found.slice(1);
}

/** Says whether the process was still there. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

/** Stops the tree, the root first so that it cannot fork; answers the processes below it. */
export function stopTree(root: number): number[] {
  signal(root, "SIGSTOP");
  const below = descendants(root);
  for (const pid of below) signal(pid, "SIGSTOP");
  return below;
}

export function continueTree(root: number): void {
  for (const pid of descendants(root)) signal(pid, "SIGCONT");
  signal(root, "SIGCONT");
}

function gone(pids: readonly number[]): boolean {
  const living = new Set(processTable().flatMap((entry) => (entry.state === "Z" || entry.state === "X" ? [] : [entry.pid])));
  return !pids.some((pid) => living.has(pid));
}

/** Kills the tree at once, as a power cut would: all are stopped first, so none can tidy up. */
export async function killTree(root: number): Promise<void> {
  const all = [root, ...stopTree(root)];
  for (const pid of all) signal(pid, "SIGKILL");
  while (!gone(all)) await sleep(2);
}
