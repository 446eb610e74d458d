// Writes down what was found, on request: the numbers of states in the table of models, and the
// traces beside it. The tests compare.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { pathOf, tablePath } from "./models.mjs";

const BLOCK = /```text\n[\s\S]*?```/;

/** @param {readonly import("./verdict.mjs").Found[]} findings */
export function keep(findings) {
  for (const { name, states, trace } of findings) {
    keepStates(name, states);
    if (trace.length > 0) keepTrace(pathOf(`models/${name}.md`), trace);
  }
}

/** @param {string} model @param {number} states */
function keepStates(model, states) {
  const [specification = "", name = ""] = model.split("/");
  const row = new RegExp(`(^## ${specification}\\n[^]*?^\\| \\[?${name}\\b(?!-).* \\| )[\\d ]+( \\| \\S+ \\|$)`, "m");
  const count = states.toLocaleString("en").replaceAll(",", " ");
  writeFileSync(tablePath, readFileSync(tablePath, "utf8").replace(row, `$1${count}$2`));
}

/** @param {string} path @param {readonly string[]} trace */
function keepTrace(path, trace) {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "```text\n```\n";
  writeFileSync(
    path,
    text.replace(BLOCK, () => ["```text", ...trace, "```"].join("\n")),
  );
}
