// Writes down what was found, on request: the numbers of states in the table of models.
import { readFileSync, writeFileSync } from "node:fs";
import { tablePath } from "./models.mjs";

/** @param {readonly import("./verdict.mjs").Found[]} findings */
export function keep(findings) {
  for (const { name, states } of findings) {
    const [specification = "", variant = ""] = name.split("/");
    const row = new RegExp(`(^## ${specification}\\n[\\s\\S]*?^\\| ${variant} .* \\| )[\\d ]+( \\| \\S+ \\|$)`, "m");
    const count = states.toLocaleString("en").replaceAll(",", " ");
    writeFileSync(tablePath, readFileSync(tablePath, "utf8").replace(row, `$1${count}$2`));
  }
}
