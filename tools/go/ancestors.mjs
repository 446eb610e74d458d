// Notices that a process between us and the package manager died without a word (kill -9 of npm or of its shell), which no signal tells us.
// Decides only which processes those are; what to do then is the caller's. Watches nothing when we were not started by a package manager.
import { commandOf, lookIsCheap, parentOf, sessionOf } from "./process-table.mjs";

const everyMs = lookIsCheap ? 200 : 1000;
const furthest = 5;

/** @param {() => void} onGone called once, when a link of the chain is broken */
export function watchAncestors(onGone) {
  if (process.env.npm_lifecycle_event === undefined) return;
  const chain = chainToPackageManager();
  if (chain.length === 1) return onGone();
  const timer = setInterval(() => {
    if (intact(chain)) return;
    clearInterval(timer);
    onGone();
  }, everyMs).unref();
}

/**
 * Us first, then parent by parent up to the package manager; only our parent when none is found. Us alone: it was killed before we could look, and we have been
 * handed to a stranger, who is of another session.
 */
function chainToPackageManager() {
  const chain = [process.pid];
  for (let pid = process.ppid; pid > 0 && chain.length < furthest; pid = parentOf(pid)) {
    chain.push(pid);
    if (/(^|[\s/])(npm|pnpm|npx|yarn|bun)\b/.test(commandOf(pid))) return chain;
  }
  return sessionOf(process.pid) === sessionOf(process.ppid) ? chain.slice(0, 2) : [process.pid];
}

/**
 * A dead parent shows as a changed one: its children are handed to another process at once, so a reused pid cannot deceive us.
 * @param {readonly number[]} chain
 */
function intact(chain) {
  return chain.slice(1).every((parent, index) => parentOf(chain[index] ?? 0) === parent);
}
