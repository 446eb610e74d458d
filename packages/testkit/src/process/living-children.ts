// The register of every child this process has started and not yet seen die, and of what must be
// undone when this process ends.
import { rmSync } from "node:fs";

export interface LivingChild {
  readonly pid: number;
  readonly name: string;
}

interface Register {
  readonly children: Map<number, LivingChild>;
  readonly folders: Set<string>;
}

// One register for the process, even when this module is loaded twice (from src and from dist).
const key = Symbol.for("palisade.testkit.register");
const holder = globalThis as unknown as Record<symbol, Register | undefined>;
const register = ownRegister();

/** The children of this process that are alive, oldest first. Tests fail when one is left over. */
export function livingChildren(): readonly LivingChild[] {
  return [...register.children.values()];
}

export function noteStarted(child: LivingChild): void {
  register.children.set(child.pid, child);
}

export function noteEnded(child: LivingChild): void {
  register.children.delete(child.pid);
}

/** The folder is removed when this process ends, unless `keepFolder` is called first. */
export function removeFolderAtExit(folder: string): void {
  register.folders.add(folder);
}

export function keepFolder(folder: string): void {
  register.folders.delete(folder);
}

function ownRegister(): Register {
  const existing = holder[key];
  if (existing !== undefined) return existing;
  const created: Register = { children: new Map(), folders: new Set() };
  holder[key] = created;
  process.once("exit", () => undoEverything(created));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    const onSignal = (): void => {
      // Another listener ends the program in its own order, and our exit handler does the rest.
      if (process.listenerCount(signal) > 1 + passiveListeners()) return;
      undoEverything(created);
      process.removeListener(signal, onSignal);
      process.kill(process.pid, signal);
    };
    process.on(signal, onSignal);
  }
  return created;
}

/**
 * The listeners of signal-exit, which testcontainers loads: they end the process only where there
 * is no other listener. If each left it to the other, a signal would do nothing.
 */
function passiveListeners(): number {
  const known = process as unknown as { readonly __signal_exit_emitter__?: { readonly count: number } };
  return known.__signal_exit_emitter__?.count ?? 0;
}

function undoEverything(all: Register): void {
  for (const { pid } of all.children.values()) killGroup(pid);
  for (const folder of all.folders) {
    try {
      // A killed server may take a moment to be gone, and write a last file meanwhile.
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 10 });
    } catch (cause) {
      process.stderr.write(`left behind: ${folder} (${(cause as Error).message})\n`);
    }
  }
}

/** SIGKILL to the child and to what it forked; a child that has already gone is what was wanted. */
export function killGroup(pid: number): void {
  for (const target of [-pid, pid]) {
    try {
      process.kill(target, "SIGKILL");
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      // macOS answers EPERM for a group of zombies; the child itself is asked next.
      if (code !== "ESRCH" && !(code === "EPERM" && target < 0)) throw cause;
    }
  }
}
