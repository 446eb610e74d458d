// What the kernel says of a process, and signals to a process with all that it started, in whatever
// sessions: a signal to its group would not reach those. Linux tells by /proc, because slim images
// have no ps; elsewhere ps tells.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep, setImmediate as turn } from "node:timers/promises";

const STOP_TIMEOUT_MS = 20_000;

interface ProcessState {
  /** One letter, as ps shows it: T is stopped, Z has ended and is not yet waited for. */
  readonly state: string;
  readonly parent: number;
}

/** Undefined when there is no such process, or no /proc. */
export function processState(pid: number | string): ProcessState | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    // "123 (a name) T 1 …": the name may contain anything, even ") ".
    const [state = "", parent] = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent) };
  } catch {
    return undefined; // It has ended.
  }
}

/** A zombie does not run: in a container without an init process orphans stay zombies. */
export function isRunning(pid: number): boolean {
  if (process.platform === "linux") return !["Z", "X", undefined].includes(processState(pid)?.state);
  try {
    return process.kill(pid, 0);
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Resolves when SIGSTOP has taken effect, which takes a moment; without /proc, at once. */
export async function untilStopped(pid: number): Promise<void> {
  const giveUpAt = performance.now() + STOP_TIMEOUT_MS;
  for (;;) {
    const state = processState(pid)?.state;
    if (state === "T" || state === undefined) return;
    if (performance.now() > giveUpAt) throw new Error(`process ${pid} was sent SIGSTOP ${STOP_TIMEOUT_MS} ms ago and is in state ${state}`);
    await turn();
  }
}

/** Stops the process first, so that it cannot fork, and all below it; answers them all. */
export function stopTree(root: number): readonly number[] {
  signal(root, "SIGSTOP");
  const tree = treeOf(root);
  for (const pid of tree) signal(pid, "SIGSTOP");
  return tree;
}

export function continueTree(root: number): void {
  for (const pid of [...treeOf(root)].reverse()) signal(pid, "SIGCONT");
}

/** Kills the tree at once, as a power cut would: all are stopped first, so none can tidy up. */
export async function killTree(root: number): Promise<void> {
  const tree = stopTree(root);
  for (const pid of tree) signal(pid, "SIGKILL");
  for (let living = tree; living.length > 0; await sleep(2)) {
    const running = new Set(processTable().flatMap(({ pid, state }) => (state === "Z" || state === "X" ? [] : [pid])));
    living = tree.filter((pid) => running.has(pid));
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The process and all below it. */
function treeOf(root: number): readonly number[] {
  const table = processTable();
  const found = [root];
  for (const above of found) for (const { pid, parent } of table) if (parent === above) found.push(pid);
  return found;
}

function processTable(): (ProcessState & { readonly pid: number })[] {
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
