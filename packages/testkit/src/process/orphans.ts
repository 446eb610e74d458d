// What must not outlive this process: the children that it started and the folders that it made. A
// reaper, a shell in a session of its own, is told of them through a pipe. The pipe ends when this
// process ends, whatever ended it, and then the reaper kills the children with what they forked, and
// removes the folders.
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface LivingChild {
  readonly pid: number;
  readonly name: string;
}

// Lines are "+pid", "-pid", "/folder", and "?/folder" for a folder that ends whoever names it.
const REAPER = `
trap "" HUP INT TERM
pids=" "
named=
while IFS= read -r line; do
  rest=\${line#?}
  case $line in
    +*) pids="$pids$rest " ;;
    -*) pids="\${pids%% $rest *} \${pids#* $rest }" ;;
    /*) set -- "$@" "$line" ;;
    *) named="\${named:+$named
}$rest" ;;
  esac
done
for pid in $pids; do kill -KILL "-$pid"; kill -KILL "$pid"; done 2> /dev/null
for try in \${named:+1 2 3}; do
  for process in /proc/[0-9]*; do
    tr '\\0' ' ' < "$process/cmdline" | grep -qF "$named" && kill -KILL "\${process#/proc/}"
  done
  sleep 0.2
done 2> /dev/null
for try in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$@" && exit; sleep 0.1; done`;

interface Guard {
  readonly children: Map<number, LivingChild>;
  readonly tell: (line: string) => void;
}

// One for the process, however often this module is loaded: per test file, from src and from dist.
const key = Symbol.for("palisade.testkit.guard");
const holder = globalThis as unknown as Record<symbol, Guard | undefined>;

function guard(): Guard {
  const existing = holder[key];
  if (existing !== undefined) return existing;
  const reaper = spawn("/bin/sh", ["-c", REAPER], {
    argv0: "palisade-reaper",
    cwd: "/",
    detached: true, // Ctrl-C at the terminal must not reach it before us.
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
  });
  const warn = (cause: Error): void => process.emitWarning(`servers may outlive this process, the reaper is gone: ${cause.message}`);
  const pipe = reaper.stdin as Socket;
  for (const emitter of [reaper, pipe]) {
    emitter.on("error", warn);
    emitter.unref();
  }
  const created: Guard = { children: new Map(), tell: (line) => pipe.write(`${line}\n`) };
  holder[key] = created;
  return created;
}

/** The children of this process that are alive, oldest first. Tests fail when one is left over. */
export function livingChildren(): readonly LivingChild[] {
  return [...guard().children.values()];
}

export function noteStarted(child: LivingChild): void {
  guard().children.set(child.pid, child);
  endsWithUs(child.pid);
}

export function noteEnded({ pid }: LivingChild): void {
  guard().children.delete(pid);
  outlivesUs(pid);
}

/** A process that the reaper kills, with its group. */
export function endsWithUs(pid: number): void {
  guard().tell(`+${pid}`);
}

/** It has ended, or may go on: only after `endsWithUs`. */
export function outlivesUs(pid: number): void {
  guard().tell(`-${pid}`);
}

/** Whoever has a path below this folder on its command line is killed. */
export function usersEndWithUs(folder: string): void {
  guard().tell(`?${folder}/`);
}

/** A new private folder below `root`. */
export function scratchFolder(label: string, root = tmpdir()): string {
  const folder = mkdtempSync(join(root, `palisade-${label}-`));
  guard().tell(folder);
  return folder;
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
