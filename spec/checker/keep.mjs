// Writes down what was found: the number of states in each .cfg, the trace in the .md beside it, the table in the README. Only on request; the tests compare.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { allModels, pathOf } from "./models.mjs";

const readme = fileURLToPath(new URL("../README.md", import.meta.url));
const block = /```text\n[\s\S]*?```/;
const table = /(<!-- models -->\n)[\s\S]*?(<!-- \/models -->)/;

/** @param {readonly import("./verdict.mjs").Found[]} findings */
export function keep(findings) {
  for (const { name, states, trace } of findings) {
    const cfg = pathOf(name, ".cfg");
    writeFileSync(cfg, readFileSync(cfg, "utf8").replace(/^(\\\* states: ).*$/m, `$1${states}`));
    if (trace.length > 0) keepTrace(pathOf(name, ".md"), trace);
  }
  if (existsSync(readme))
    writeFileSync(
      readme,
      readFileSync(readme, "utf8").replace(table, (_, open, close) => `${open}${rows()}\n${close}`),
    );
}

/** @param {string} path @param {readonly string[]} trace */
function keepTrace(path, trace) {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "```text\n```\n";
  writeFileSync(
    path,
    text.replace(block, () => ["```text", ...trace, "```"].join("\n")),
  );
}

/** The table of all models, from what their files say. */
function rows() {
  const lines = allModels().map(({ name, title, expected, onDemand, states }) => {
    const file = expected === "holds" ? "cfg" : "md";
    return `| [${name}](models/${name}.${file}) | ${title} | ${expected} | ${states.toLocaleString("en").replaceAll(",", " ")} | ${onDemand ? "`--all`" : "always"} |`;
  });
  return ["| model | what happens in it | verdict | states | run |", "| --- | --- | --- | ---: | --- |", ...lines].join("\n");
}
