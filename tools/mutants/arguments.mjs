// Reads the command line of `npm run mutants`. Decides only what was asked for; an argument that means nothing is refused, so that no run proves less than it seems to.
import { parseArgs } from "node:util";
import { Refusal } from "../go/refusal.mjs";

/**
 * @typedef {object} Wish
 * @property {readonly string[]} names those mutants; all when there are none
 * @property {boolean} list only print them
 * @property {boolean} short a part of them, chosen by the seed
 * @property {number} seed
 * @property {string | undefined} json where to write the report
 */

/** @param {readonly string[]} args @param {number} chance from 0 to 1 @returns {Wish} */
export function readArguments(args, chance) {
  const { values, positionals } = parsed(args);
  const seed = Number(values.seed ?? Math.floor(chance * 1_000_000));
  if (!Number.isInteger(seed) || seed < 0) throw new Refusal(`--seed must be a whole number, not ${values.seed}.`);
  if (values.seed !== undefined && values.short !== true)
    throw new Refusal("--seed chooses the mutants of a short run; give --short with it.");
  if (values.short === true && positionals.length > 0) throw new Refusal("--short chooses the mutants by itself; give it no names.");
  return { names: positionals, list: values.list === true, short: values.short === true, seed, json: values.json };
}

/** @param {readonly string[]} args */
function parsed(args) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { list: { type: "boolean" }, short: { type: "boolean" }, seed: { type: "string" }, json: { type: "string" } },
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Refusal(`${reason} What there is: npm run mutants -- [--list] [--short [--seed N]] [--json FILE] [NAME…]`);
  }
}
