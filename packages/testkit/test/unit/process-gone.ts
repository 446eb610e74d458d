// Waits until processes have gone, for tests about orphans. A zombie that waits for its parent to look has gone too.
import { readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";

const deadlineMs = 5_000;

export async function untilGone(pids: readonly number[]): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    const living = pids.filter(isAlive);
    if (living.length === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`still alive after ${deadlineMs} ms: ${living.join(", ")}`);
    await delay(5);
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false; // gone between the two looks
  }
}
