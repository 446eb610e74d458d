// What the kernel says of a process: its state, its parent, when it started. Only Linux tells
// (/proc); slim images have no ps. Temporary folders bear the name of the process that made them;
// those whose maker was killed are removed by the next process that makes one.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { removeFolderAtExit } from "./orphans.js";

const STOP_TIMEOUT_MS = 2_000;

interface ProcessState {
  /** One letter, as ps shows it: T is stopped, Z has ended and is not yet waited for. */
  readonly state: string;
  readonly parent: number;
  /** In ticks since the machine started. A pid is used again; the pair of pid and birth is not. */
  readonly birth: string;
}

/** Undefined when there is no such process, or no /proc. */
export function processState(pid: number | string): ProcessState | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    // "123 (a name) T 1 …": the name may contain anything, even ") ".
    const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0] ?? "", parent: Number(fields[1]), birth: fields[19] ?? "" };
  } catch {
    return undefined; // It has ended.
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

/** This process as `isRunning` knows it. */
export const thisProcess = `${process.pid}.${processState(process.pid)?.birth ?? ""}`;

/**
 * Whether the process with this pid and birth still runs. The births are compared, because a
 * container gives the same few process ids again and again.
 */
export function isRunning(owner: string): boolean {
  const [pid, birth] = owner.split(".");
  if (birth) return processState(Number(pid))?.birth === birth;
  try {
    return process.kill(Number(pid), 0);
  } catch (cause) {
    return (cause as NodeJS.ErrnoException).code === "EPERM";
  }
}

// The host is part of the name, because two containers may share /tmp and not their process ids.
const prefix = `palisade-${hostname()}-`;
const swept = new Set<string>();

/** A new private folder below `root`, removed at the end of this process if not before. */
export function scratchFolder(label: string, root = tmpdir()): string {
  sweepOnce(root);
  const folder = mkdtempSync(join(root, `${prefix}${thisProcess}-${label}-`));
  removeFolderAtExit(folder);
  return folder;
}

function sweepOnce(root: string): void {
  if (swept.has(root)) return;
  swept.add(root);
  for (const name of readdirSync(root)) {
    if (!name.startsWith(prefix) || ownerLives(name.slice(prefix.length))) continue;
    try {
      rmSync(join(root, name), { recursive: true, force: true });
    } catch (cause) {
      // Another user's folder, left to that user's next run; or another process sweeps just now.
      if (!["EACCES", "EPERM", "ENOENT", "ENOTEMPTY"].includes((cause as NodeJS.ErrnoException).code ?? "")) throw cause;
    }
  }
}

function ownerLives(rest: string): boolean {
  const [, owner] = /^(\d+\.\d*)-/.exec(rest) ?? [];
  return owner === undefined || isRunning(owner); // Without an owner it is no folder of ours.
}
