// The models: the tables of spec/models.md, each row with the configuration that the checker runs.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The file that lists them, in spec/. */
export const tablePath = pathOf("models.md");

/**
 * @typedef {object} Model
 * @property {string} name specification/variant
 * @property {string} expected "holds", or "<invariant> is violated"
 * @property {boolean} onDemand too large for every run of the tests
 * @property {number} states how many distinct states are explored until the verdict
 * @property {string} cfg the configuration, as TLC reads it
 * @property {string} module the whole specification
 * @property {readonly string[]} invariants
 * @property {readonly string[]} without the rules that are left out
 */

/** @returns {readonly Model[]} */
export function allModels() {
  const [, ...chapters] = readFileSync(tablePath, "utf8").split(/^## /m);
  return chapters.flatMap((chapter) => {
    const [specification = ""] = chapter.split("\n", 1);
    const module = readFileSync(pathOf(`${specification}.tla`), "utf8");
    const rows = chapter.split("\n").filter((line) => /^\| (?!---|model )/.test(line));
    const usual = constantsIn(line(chapter, "Usual"));
    const invariants = [...line(chapter, "Invariants").matchAll(/`(\w+)`/g)].map(([, one = ""]) => one);
    return rows.map((row) => readRow(row, { specification, module, usual, invariants }));
  });
}

/** @param {string} path in spec/ */
export function pathOf(path) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}

/**
 * @param {string} row
 * @param {{ specification: string, module: string, usual: ReadonlyMap<string, string>, invariants: readonly string[] }} chapter
 * @returns {Model}
 */
function readRow(row, { specification, module, usual, invariants }) {
  const [, label = "", , changed = "", expected = "", states = "", run = ""] = row.split(/ ?\| ?/);
  const constants = new Map([...usual, ...constantsIn(changed)]);
  const [broken] = expected.split(" ");
  // Only the invariant that has to break: the checker stops at the first one that does.
  const checked = expected === "holds" ? invariants : [broken ?? ""];
  const lines = [...constants].map(([name, value]) => `  ${name} = ${value}`);
  return {
    name: `${specification}/${label.trim().replace(/^\[([\w-]+)\].*$/, "$1")}`,
    expected,
    onDemand: run.includes("--all"),
    states: Number(states.replaceAll(" ", "")),
    cfg: ["SPECIFICATION Spec", "CONSTANTS", ...lines, `INVARIANTS ${checked.join(" ")}`, ""].join("\n"),
    module,
    invariants: checked,
    without: [...(constants.get("Without") ?? "").matchAll(/"([^"]+)"/g)].map(([, rule = ""]) => rule),
  };
}

/** "`Name = value`, `Other = value`" @param {string} text */
function constantsIn(text) {
  return new Map([...text.matchAll(/`(\w+) = ([^`]+)`/g)].map(([, name = "", value = ""]) => [name, value]));
}

/** @param {string} chapter @param {string} name */
function line(chapter, name) {
  const found = new RegExp(`(?:^|\\s)${name}: ([^]+?)(?=\\s+Invariants: |\\n\\n)`).exec(chapter)?.[1];
  if (found === undefined) throw new Error(`a chapter of ${tablePath} has no "${name}: …"`);
  return found;
}
