// One run at a time prepares this clone (install, build); the others wait for their turn, which
// also passes on when its owner was killed. The turn is a file naming its owner. It is taken with
// link(2), which creates it whole or not at all.
import { randomUUID } from "node:crypto";
import { linkSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cache } from "./checkout.mjs";
import { throwIfInterrupted } from "./child.mjs";
import { birthOf } from "./process-table.mjs";
import { step } from "./progress.mjs";

const EVERY_MS = 50;
/** An owner in another container cannot be looked at; after this long it is taken for dead. */
const FOREIGN_TURN_MS = 10 * 60_000;

/**
 * @template T
 * @param {() => Promise<T>} work
 * @param {string} turn
 * @returns {Promise<T>}
 */
export async function inTurn(work, turn = join(cache, "turn")) {
  const claim = `${turn}.${randomUUID()}`;
  try {
    writeFileSync(claim, JSON.stringify({ pid: process.pid, birth: birthOf(process.pid), host: hostname(), writtenAt: Date.now() }));
    if (!take(turn, claim)) await step("waiting for another run in this clone to finish its preparation", () => wait(turn, claim));
  } finally {
    rmSync(claim, { force: true });
  }
  try {
    return await work();
  } finally {
    rmSync(turn, { force: true });
  }
}

/** @param {string} turn @param {string} claim */
async function wait(turn, claim) {
  while (!take(turn, claim)) {
    throwIfInterrupted();
    if (!orphaned(turn) || !clear(turn, claim)) await sleep(EVERY_MS);
  }
}

/** @param {string} turn @param {string} claim */
function take(turn, claim) {
  return unless("EEXIST", () => linkSync(claim, turn));
}

/**
 * Two waiters may judge the same dead owner at once, and the slower one would then remove the turn
 * that the faster one has taken since. So removing has a turn of its own, whose owner judges again.
 * @param {string} turn @param {string} claim @returns {boolean} false: another waiter is at it
 */
function clear(turn, claim) {
  const clearing = `${turn}.clearing`;
  if (!take(clearing, claim)) {
    if (orphaned(clearing)) rmSync(clearing, { force: true });
    return false;
  }
  if (orphaned(turn)) rmSync(turn, { force: true });
  rmSync(clearing, { force: true });
  return true;
}

/** @param {string} turn */
function orphaned(turn) {
  let text = "";
  if (!unless("ENOENT", () => (text = readFileSync(turn, "utf8")))) return false;
  const owner = JSON.parse(text);
  if (owner.host !== hostname()) return Date.now() - owner.writtenAt > FOREIGN_TURN_MS;
  return birthOf(owner.pid) !== owner.birth;
}

/**
 * Runs it; false when it failed with the expected code.
 * @param {string} code @param {() => void} work
 */
function unless(code, work) {
  try {
    work();
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === code) return false;
    throw error;
  }
}
