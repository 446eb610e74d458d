// All mutants there are: those of the lists in the folders beside this file. A mutant leaves its
// list only with the code it is about, never because it survives.
import { readdirSync, readFileSync } from "node:fs";
import { mutantsIn } from "./list.mjs";

export const catalogue = ["gateway", "client", "cli", "lock"].flatMap((folder) => {
  const lists = readdirSync(new URL(folder, import.meta.url)).sort();
  return lists.flatMap((list) => mutantsIn(readFileSync(new URL(`${folder}/${list}`, import.meta.url), "utf8")));
});
