// What must not outlive this process: the children that it started and has not seen die, and the
// folders of theirs. A child dies with it even after a SIGKILL that lets no handler run: by the
// kernel (setpriv) or by a reaper process.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import type { Writable } from "node:stream";

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

export interface GuardedCommand {
  readonly command: string;
  readonly args: readonly string[];
}

interface OrphanGuard {
  readonly name: "setpriv" | "reaper";
  /** The command to spawn in place of the given one. */
  wrap(target: GuardedCommand): GuardedCommand;
  /** Called at once after the spawn, and when the child has gone. */
  started(pid: number): void;
  ended(pid: number): void;
}

// If we die between the fork and setpriv's prctl, no signal will ever come. The child then has
// another parent, so it looks before it turns into the server.
const STILL_OUR_CHILD = `[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"`;

const kernelGuard: OrphanGuard = {
  name: "setpriv",
  // setpriv runs after the change of uid and gid, which would make the kernel forget the signal.
  wrap: ({ command, args }) => ({
    command: "setpriv",
    args: ["--pdeathsig", "KILL", "--", "/bin/sh", "-c", STILL_OUR_CHILD, "sh", String(process.pid), command, ...args],
  }),
  started() {},
  ended() {},
};

// Reads "+pid" and "-pid" lines. Its stdin ends when the last copy of our end of the pipe closes,
// that is when we are gone, however we went.
const reaperProgram = `
const living = new Set();
let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text) => {
  const lines = (rest + text).split("\\n");
  rest = lines.pop();
  for (const line of lines) line[0] === "+" ? living.add(Number(line.slice(1))) : living.delete(Number(line.slice(1)));
});
process.stdin.on("close", () => {
  for (const pid of living) for (const target of [-pid, pid]) try { process.kill(target, "SIGKILL"); } catch {}
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => {});
`;

class ReaperGuard implements OrphanGuard {
  readonly name = "reaper";
  #reaper: ChildProcess | undefined;

  wrap(target: GuardedCommand): GuardedCommand {
    this.#pipe();
    return target;
  }

  started(pid: number): void {
    this.#pipe().write(`+${pid}\n`);
  }

  ended(pid: number): void {
    this.#pipe().write(`-${pid}\n`);
  }

  #pipe(): Writable {
    if (this.#reaper?.stdin?.writable !== true) {
      const options = { argv0: "palisade-reaper", detached: true, stdio: ["pipe", "ignore", "ignore"], env: {} } as const;
      const reaper = spawn(process.execPath, ["-e", reaperProgram], { ...options, stdio: [...options.stdio] });
      reaper.on("error", (cause) => process.emitWarning(`the reaper could not start, servers may outlive this process: ${cause.message}`));
      reaper.stdin?.on("error", (cause) => process.emitWarning(`the reaper is gone, servers may outlive this process: ${cause.message}`));
      reaper.unref();
      (reaper.stdin as unknown as { unref?: () => void } | null)?.unref?.();
      this.#reaper = reaper;
    }
    return this.#reaper?.stdin as Writable;
  }
}

let chosen: OrphanGuard | undefined;

/** setpriv where it works, else the reaper. `PALISADE_ORPHAN_GUARD=reaper` asks for the second. */
export function orphanGuard(): OrphanGuard {
  chosen ??= process.env.PALISADE_ORPHAN_GUARD !== "reaper" && setprivWorks() ? kernelGuard : new ReaperGuard();
  return chosen;
}

// BusyBox has a setpriv without --pdeathsig, and some sandboxes forbid prctl: only a try tells.
function setprivWorks(): boolean {
  if (process.platform !== "linux") return false;
  return spawnSync("setpriv", ["--pdeathsig", "KILL", "--", "/bin/sh", "-c", ":"], { stdio: "ignore" }).status === 0;
}
