// Tells when a stopped process has in fact stopped: a signal is on its way for a moment. It must not send signals.
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";

const patienceMs = 2_000;

/** Resolves when SIGSTOP has taken effect. Where the system does not tell (no /proc), at once. */
export async function untilStopped(pid: number): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (stateOf(pid) !== "T") {
    if (stateOf(pid) === undefined) return;
    if (performance.now() > giveUpAt)
      throw new Error(`process ${pid} was sent SIGSTOP ${patienceMs} ms ago and is in state ${stateOf(pid)}`);
    await turn();
  }
}

function stateOf(pid: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    // "123 (a name) T …": the name may contain anything, even ") ".
    const line = readFileSync(`/proc/${pid}/stat`, "latin1");
    return line.charAt(line.lastIndexOf(")") + 2);
  } catch {
    return undefined; // it has ended, which whoever waits for it will notice
  }
}
