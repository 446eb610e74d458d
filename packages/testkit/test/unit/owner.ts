// A program of its own process that owns servers or children, for tests about what it leaves
// behind. Whatever becomes of the test, no owner outlives its file, if that says
// afterAll(endOwners). It cannot be said here: files that share a process share this module, and
// the hook would be the first one's only.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { processState } from "../../src/process/process-state.js";

export interface OwnerSpec {
  /** The name of a compiled program, below the tests of this package: "unit/process-orphans". */
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const owners = new Set<ChildProcess>();

/** An owner with its output open would keep the whole run from ending. */
export function endOwners(): void {
  for (const owner of owners) owner.kill("SIGKILL");
}

/** Starts it and reads the first line it prints, which is JSON about what it owns. */
export async function startOwner<Owned>({ program, args, env }: OwnerSpec): Promise<{ owner: ChildProcess; owned: Owned }> {
  const path = fileURLToPath(new URL(`../../.build/test/${program}.program.js`, import.meta.url));
  const owner = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } });
  owners.add(owner);
  owner.once("exit", () => owners.delete(owner));
  // Until its output has ended: that it has ended itself may be known before its last words are.
  const output = createInterface(owner.stdout);
  const [line] = await Promise.race([once(output, "line"), once(output, "close")]);
  if (typeof line !== "string") throw new Error(`${program} said nothing of what it owns, and ended with ${await ended(owner)}`);
  return { owner, owned: JSON.parse(line) as Owned };
}

/** Answers how it ended: with this code, or by this signal. */
export async function ended(owner: ChildProcess): Promise<number | NodeJS.Signals | null> {
  if (owner.exitCode === null && owner.signalCode === null) await once(owner, "exit");
  return owner.exitCode ?? owner.signalCode;
}

export async function endOwner(owner: ChildProcess, signal: NodeJS.Signals): Promise<number | NodeJS.Signals | null> {
  owner.kill(signal);
  return ended(owner);
}

// Waits until processes have gone, zombies included, for tests about orphans.
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
