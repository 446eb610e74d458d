// Lets a child die with this process, even after a SIGKILL that lets no handler run: by the kernel
// (setpriv) or by a reaper process.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import type { Writable } from "node:stream";

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
