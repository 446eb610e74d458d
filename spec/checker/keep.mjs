// Writes down what was found, on request: the numbers of states in the table of models, and the
// traces beside it. The tests compare.
import { readFileSync, writeFileSync } from "node:fs";
import { pathOf, tablePath } from "./models.mjs";

/** @param {readonly import("./verdict.mjs").Found[]} findings */
export function keep(findings) {
  for (const { name, states, trace } of findings) {
    const [specification = "", variant = ""] = name.split("/");
    keepStates(specification, variant, states);
    if (trace.length > 0) keepTrace(pathOf(`models/${specification}.md`), variant, trace);
  }
}

/** @param {string} specification @param {string} variant @param {number} states */
function keepStates(specification, variant, states) {
  const row = new RegExp(`(^## ${specification}\\n[\\s\\S]*?^\\| \\[?${variant}\\b(?!-).* \\| )[\\d ]+( \\| \\S+ \\|$)`, "m");
  const count = states.toLocaleString("en").replaceAll(",", " ");
  writeFileSync(tablePath, readFileSync(tablePath, "utf8").replace(row, `$1${count}$2`));
}

/**
 * In the chapter of the variant, which is made if there is none.
 * @param {string} path @param {string} variant @param {readonly string[]} trace
 */
function keepTrace(path, variant, trace) {
  const text = readFileSync(path, "utf8");
  const whole = text.includes(`\n## ${variant}\n`) ? text : `${text}\n## ${variant}\n\n\`\`\`text\n\`\`\`\n`;
  const chapter = new RegExp(`(\\n## ${variant}\\n[\\s\\S]*?\`\`\`text\\n)[\\s\\S]*?\`\`\``);
  writeFileSync(
    path,
    whole.replace(chapter, (_, start) => `${start}${trace.join("\n")}\n\`\`\``),
  );
}
