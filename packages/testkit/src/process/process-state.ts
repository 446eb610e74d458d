// What the kernel says of a process: its state, its parent, when it started. Only Linux tells
// (/proc); slim images have no ps.
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";

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
