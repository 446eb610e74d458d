// Makes a process stand still and go on by real signals, as a debugger, a full host or a moved virtual machine would. Decides no moment.
import { readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import type { Child } from "@palisade/testkit";

const patienceMs = 10_000;

/** SIGSTOP. Resolves when the process does stand still; a signal is on its way for a moment. */
export async function pause(child: Child): Promise<void> {
  if (!child.signal("SIGSTOP")) throw new Error(child.obituary());
  const giveUpAt = performance.now() + patienceMs;
  while (stateOf(child.pid) !== "T") {
    if (performance.now() > giveUpAt)
      throw new Error(`${child.name} (process ${child.pid}) was sent SIGSTOP ${patienceMs} ms ago and still runs`);
    await turn();
  }
}

/** SIGCONT. */
export function resume(child: Child): void {
  if (!child.signal("SIGCONT")) throw new Error(child.obituary());
}

function stateOf(pid: number): string {
  if (process.platform !== "linux") return "T"; // Where the system does not tell, the signal is believed.
  const line = readFileSync(`/proc/${pid}/stat`, "latin1");
  return line.charAt(line.lastIndexOf(")") + 2); // "123 (a name) T …": the name may contain anything, even ") ".
}
