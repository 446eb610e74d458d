// Which mutants a run tries, and in which order. Pure: the same seed chooses the same.
import { Refusal } from "../go/refusal.mjs";

/** How many a short run sets out to try; they take about a minute and a half together, on two cores. */
export const shortCount = 14;

/** @typedef {import("./mutant.mjs").Mutant} Mutant */

/** @param {readonly Mutant[]} all @param {import("./arguments.mjs").Wish} wish @returns {readonly Mutant[]} */
export function chosen(all, { names, short, seed }) {
  if (short) return shuffled(all, seed).slice(0, shortCount);
  const unknown = names.filter((name) => all.every((mutant) => mutant.name !== name));
  if (unknown.length > 0) throw new Refusal(`there is no mutant ${unknown.join(", ")}; npm run mutants -- --list names all of them.`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

/** Fisher and Yates. @param {readonly Mutant[]} all @param {number} seed */
function shuffled(all, seed) {
  const list = [...all];
  const draw = drawn(seed);
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(draw() * (last + 1));
    const held = /** @type {Mutant} */ (list[last]);
    list[last] = /** @type {Mutant} */ (list[other]);
    list[other] = held;
  }
  return list;
}

/** A small generator (mulberry32): good enough to shuffle a list, and the same everywhere. @param {number} seed */
function drawn(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
