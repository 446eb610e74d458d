// Runs one child process so that it cannot outlive this one: where setpriv exists the kernel kills
// it at our death, elsewhere it watches for that. It gets its own process group, so a Ctrl-C of the
// terminal reaches it through us, once, and what it leaves in its group is killed with it.
import { spawn, spawnSync } from "node:child_process";
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { root } from "./checkout.mjs";

const GRACE_MS = 10_000;
/** Not longer: the dead count until they are buried, which in some containers never happens. */
const GROUP_END_MS = 500;

/** Thrown instead of starting another child after an interrupt. */
export class Interrupted extends Error {}

/**
 * What runs now, and whether an interrupt asks it to end or kills it.
 * @type {Map<import("node:child_process").ChildProcess, "asked" | "killed">}
 */
const running = new Map();
let interrupted = false;

export function throwIfInterrupted() {
  if (interrupted) throw new Interrupted();
}

/**
 * Asks the task to end, which may have to clean up, and kills a preparation, which the next run
 * repairs. A second call, or no end in time, kills all.
 * @param {NodeJS.Signals} signal
 */
export function interrupt(signal) {
  if (interrupted) return killAll();
  interrupted = true;
  for (const [child, ending] of running) ending === "asked" ? child.kill(signal) : killGroup(child);
  setTimeout(killAll, GRACE_MS).unref();
}

function killAll() {
  for (const child of running.keys()) killGroup(child);
}

/** @param {import("node:child_process").ChildProcess} child */
function killGroup(child) {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ESRCH") throw error; // the group is empty
  }
}

/**
 * What was killed ends a moment later, and until then its folders have an owner.
 * @param {import("node:child_process").ChildProcess} child
 */
async function untilGroupIsGone({ pid }) {
  for (const giveUpAt = performance.now() + GROUP_END_MS; pid !== undefined && performance.now() < giveUpAt; await sleep(10)) {
    try {
      process.kill(-pid, 0);
    } catch {
      return;
    }
  }
}

/**
 * Runs a command to its end. `output`: "shown" passes our terminal through, "kept" gathers both
 * streams as text. `ending`: whether it is asked to end when we are interrupted, or killed. After
 * `limitMs` it is asked in any case, and killed if it does not.
 * @param {readonly string[]} command
 * @param {{ output: "shown" | "kept", ending?: "asked" | "killed", limitMs?: number, env?: Record<string, string | undefined>, cwd?: string }} options
 * @returns {Promise<{ code: number, output: string }>} code is 128 + n when a signal ended it
 */
export function run(command, { output, ending = output === "shown" ? "asked" : "killed", limitMs, env = process.env, cwd = root }) {
  throwIfInterrupted();
  const [file = "", ...args] = tethered(command);
  const child = spawn(file, args, { cwd, env, detached: true, stdio: output === "shown" ? "inherit" : ["ignore", "pipe", "pipe"] });
  running.set(child, ending);
  const limits =
    limitMs === undefined ? [] : [setTimeout(() => child.kill("SIGTERM"), limitMs), setTimeout(() => killGroup(child), limitMs + GRACE_MS)];
  /** @type {Buffer[]} */
  const written = [];
  child.stdout?.on("data", (chunk) => written.push(chunk));
  child.stderr?.on("data", (chunk) => written.push(chunk));
  return new Promise((resolve, reject) => {
    child.once("error", (error) => {
      running.delete(child);
      reject(error);
    });
    child.once("exit", () => {
      running.delete(child);
      for (const limit of limits) clearTimeout(limit);
      killGroup(child);
    });
    child.once("close", async (code, signal) => {
      await untilGroupIsGone(child);
      if (interrupted) reject(new Interrupted());
      else resolve({ code: code ?? 128 + (signal === null ? 0 : constants.signals[signal]), output: Buffer.concat(written).toString() });
    });
  });
}

/** @type {boolean | undefined} */
let kernelKillsOrphans;

/** A parent that died before setpriv ran sends no signal: the child compares its parent first. */
const LOOK = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"';

/** @param {readonly string[]} command */
function tethered(command) {
  kernelKillsOrphans ??= spawnSync("setpriv", ["--pdeathsig", "KILL", "true"], { stdio: "ignore" }).status === 0;
  if (kernelKillsOrphans) return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", LOOK, "sh", String(process.pid), ...command];
  const [file = "", ...args] = command;
  return file === process.execPath ? [file, "--import", new URL("die-with-parent.mjs", import.meta.url).href, ...args] : command;
}
