// What the operating system says of a process: /proc on Linux, `ps` elsewhere.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

export const lookIsCheap = process.platform === "linux";

/** @param {number} pid @returns {number} 0 when there is no such process */
export function parentOf(pid) {
  if (pid === process.pid) return process.ppid;
  return Number(lookIsCheap ? stat(pid)[1] : ps("ppid=", pid)) || 0;
}

/** @param {number} pid */
export function sessionOf(pid) {
  return lookIsCheap ? stat(pid)[3] : ps("sess=", pid);
}

/**
 * The program and its arguments; `ps` does not say where an argument ends, so there a space
 * separates them.
 * @param {number} pid
 */
export function argumentsOf(pid) {
  return lookIsCheap ? read(pid, "cmdline").split("\0") : ps("args=", pid).split(" ");
}

/**
 * When it started. Pids are used again, the pair of pid and birth is not.
 * @param {number} pid @returns {string} "" when there is no such process, or only its unburied record
 */
export function birthOf(pid) {
  if (!lookIsCheap) return ps("lstart=", pid);
  const [state = "Z", , , , , , , , , , , , , , , , , , , startTime = ""] = stat(pid);
  return state === "Z" || state === "X" ? "" : startTime;
}

/**
 * The fields of /proc/<pid>/stat from the state on; the name before them may contain anything.
 * @param {number} pid
 */
function stat(pid) {
  const line = read(pid, "stat");
  return line === "" ? [] : line.slice(line.lastIndexOf(")") + 2).split(" ");
}

/** @param {number} pid @param {string} file */
function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return ""; // it ended
  }
}

/** @param {string} column @param {number} pid */
function ps(column, pid) {
  return spawnSync("ps", ["-o", column, "-p", String(pid)], { encoding: "utf8" }).stdout?.trim() ?? "";
}
