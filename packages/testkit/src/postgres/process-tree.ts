// Signals a Postgres server as a whole. Every backend makes a session of its own, so a signal to
// the process group reaches only the postmaster; the tree has to be walked.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
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
function stopTree(root: number): number[] {
  signal(root, "SIGSTOP");
  const below = descendants(root);
  for (const pid of below) signal(pid, "SIGSTOP");
  return below;
}

function continueTree(root: number): void {
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

// A server whose every process is stopped by SIGSTOP, as on a suspended machine: connections stay
// open and nothing answers. A stopped backend does not notice that its postmaster has died, so a
// process of its own waits for our end and kills what we had stopped.
// read ends when the last copy of our end of the pipe closes, however we went.
const KILL_WHEN_ALONE = 'read -r _ || kill -KILL "$@"';

export class Frozen {
  readonly #root: number;
  readonly #keeper: ChildProcess;

  constructor(root: number) {
    this.#root = root;
    const below = stopTree(root);
    this.#keeper = spawn("/bin/sh", ["-c", KILL_WHEN_ALONE, "sh", ...[root, ...below].map(String)], {
      stdio: ["pipe", "ignore", "ignore"],
      detached: true, // Ctrl-C at the terminal must not reach it before us.
    });
    this.#keeper.on("error", (cause) => process.emitWarning(`nothing ends the paused server with this process: ${root}: ${cause.message}`));
    this.#keeper.unref();
    (this.#keeper.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  }

  thaw(): void {
    continueTree(this.#root);
    this.forget();
  }

  /** Lifts the watch, once nothing is left to watch over. */
  forget(): void {
    this.#keeper.kill("SIGKILL");
  }
}
