// Reads the command line of `npm run mutants` and selects the mutants it asks for. An argument that
// means nothing is refused: a run must not prove less than it seems to.
import { parseArgs } from "node:util";
import { Refusal } from "../go/refusal.mjs";

/** How many a short run tries; about a minute and a half in all, on two cores. */
export const SHORT_COUNT = 14;

/**
 * @typedef {import("./mutant.mjs").Mutant} Mutant
 * @typedef {object} Request
 * @property {readonly string[]} names those mutants; all when there are none
 * @property {boolean} list only print them
 * @property {boolean} compile only compile them, and run no test
 * @property {boolean} short a part of them, selected by the seed
 * @property {number} seed
 * @property {string | undefined} json where to write the report
 */

/** @param {readonly string[]} args @param {number} chance from 0 to 1 @returns {Request} */
export function readArguments(args, chance) {
  const { values, positionals } = parsed(args);
  const seed = Number(values.seed ?? Math.floor(chance * 1_000_000));
  if (!Number.isInteger(seed) || seed < 0) throw new Refusal(`--seed must be a whole number, not ${values.seed}.`);
  if (values.seed !== undefined && values.short !== true)
    throw new Refusal("--seed selects the mutants of a short run; give --short with it.");
  if (values.short === true && positionals.length > 0) throw new Refusal("--short selects the mutants by itself; give it no names.");
  if (values.compile === true && (values.short === true || values.json !== undefined))
    throw new Refusal("--compile runs no test; give it names, or nothing for all.");
  const { list = false, short = false, compile = false, json } = values;
  return { names: positionals, list, compile, short, seed, json };
}

/** @param {readonly string[]} args */
function parsed(args) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        list: { type: "boolean" },
        compile: { type: "boolean" },
        short: { type: "boolean" },
        seed: { type: "string" },
        json: { type: "string" },
      },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Refusal(`${reason} What there is: npm run mutants -- [--list | --compile] [--short [--seed N]] [--json FILE] [NAME…]`);
  }
}

/**
 * The mutants to run, in order; the same seed selects the same.
 * @param {readonly Mutant[]} all @param {Request} request @returns {readonly Mutant[]}
 */
export function selected(all, { names, short, seed }) {
  if (short) return shuffled(all, seed).slice(0, SHORT_COUNT);
  const unknown = names.filter((name) => all.every((mutant) => mutant.name !== name));
  if (unknown.length > 0) throw new Refusal(`there is no mutant ${unknown.join(", ")}; npm run mutants -- --list names all of them.`);
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

/** Fisher-Yates. @param {readonly Mutant[]} all @param {number} seed */
function shuffled(all, seed) {
  const list = [...all];
  const random = randomFrom(seed);
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    const held = /** @type {Mutant} */ (list[last]);
    list[last] = /** @type {Mutant} */ (list[other]);
    list[other] = held;
  }
  return list;
}

/** mulberry32: good enough to shuffle a list, and the same everywhere. @param {number} seed */
function randomFrom(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
