// All mutants there are: those of the lists in the folders beside this file. A mutant leaves its
// list only with the code it is about, never because it survives.
import { readdirSync, readFileSync } from "node:fs";
import { mutantsIn } from "./list.mjs";

/** @typedef {import("./mutant.mjs").Mutant} Mutant */

const lists = ["gateway", "client", "cli", "lock"].flatMap((folder) => {
  const url = new URL(`${folder}/`, import.meta.url);
  return readdirSync(url)
    .sort()
    .map((name) => new URL(name, url));
});

/** @type {readonly Mutant[]} */
export const catalogue = (await Promise.all(lists.map(read))).flat();

/** @param {URL} list @returns {Promise<readonly Mutant[]>} */
async function read(list) {
  if (list.pathname.endsWith(".diff")) return mutantsIn(readFileSync(list, "utf8"));
  return Object.values(await import(list.href)).flat();
}
