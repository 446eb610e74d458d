// Waits until processes have gone, for tests about orphans. A zombie that waits for its parent to
// look has gone too.
import { setTimeout as delay } from "node:timers/promises";
import { processState } from "../../src/process/process-state.js";

const DEADLINE_MS = 5_000;

export async function untilGone(pids: readonly number[]): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS;
  for (;;) {
    const living = pids.filter(isAlive);
    if (living.length === 0) return;
    if (performance.now() > giveUpAt) throw new Error(`still alive after ${DEADLINE_MS} ms: ${living.join(", ")}`);
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
  // Undefined: gone between the two looks.
  return !["Z", "X", undefined].includes(processState(pid)?.state);
}
