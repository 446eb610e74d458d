// Notices the death of a process between this one and the package manager: after kill -9 of npm or
// of its shell no signal arrives. Watches nothing when no package manager started this process.
import { argumentsOf, lookIsCheap, parentOf, sessionOf } from "./process-table.mjs";

const EVERY_MS = lookIsCheap ? 200 : 1000;
const LONGEST_CHAIN = 5;
const PACKAGE_MANAGER = /^(npm|npx|pnpm|pnpx|yarn|yarnpkg|bun|bunx)(-cli)?(\.c?js)?$/;

/**
 * @typedef {object} ProcessTable
 * @property {(pid: number) => number} parentOf
 * @property {(pid: number) => string | undefined} sessionOf
 * @property {(pid: number) => readonly string[]} argumentsOf
 */

/** @param {() => void} onGone called once, when a link of the chain is broken */
export function watchAncestors(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const chain = chainToPackageManager(process.pid, { argumentsOf, parentOf, sessionOf });
  if (chain.length === 1) return onGone();
  const timer = setInterval(() => {
    if (intact(chain)) return;
    clearInterval(timer);
    onGone();
  }, EVERY_MS).unref();
}

/**
 * This process, then parent by parent up to the package manager; only the parent when none is
 * found. This process alone when its parent died before the look: it then belongs to process 1 or
 * to another session. Process 1 adopts orphans, so it never counts as a package manager, and needs
 * no watching: nothing in its container survives it.
 * @param {number} self
 * @param {ProcessTable} table
 */
export function chainToPackageManager(self, table) {
  const chain = [self];
  for (let pid = table.parentOf(self); pid > 1 && chain.length < LONGEST_CHAIN; pid = table.parentOf(pid)) {
    chain.push(pid);
    if (isPackageManager(table.argumentsOf(pid))) return chain;
  }
  const parent = table.parentOf(self);
  return table.sessionOf(self) === table.sessionOf(parent) ? [self, parent] : [self];
}

/**
 * Judged by the program's name alone: `bash -c "npm test"` has "npm" in its command line and is a
 * shell. npm shows itself as "npm test" in one word, other package managers as node with their
 * script.
 * @param {readonly string[]} args
 */
function isPackageManager(args) {
  const [program = ""] = (args[0] ?? "").split(" ");
  const script = args.slice(1).find((arg) => !arg.startsWith("-")) ?? "";
  const named = /^node(js)?$/.test(nameOf(program)) ? script : program;
  return PACKAGE_MANAGER.test(nameOf(named));
}

/** @param {string} path */
function nameOf(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/**
 * A dead parent shows as a changed one: its children are handed to another process at once, so a
 * reused pid cannot deceive us.
 * @param {readonly number[]} chain
 */
function intact(chain) {
  return chain.slice(1).every((parent, index) => parentOf(chain[index] ?? 0) === parent);
}
