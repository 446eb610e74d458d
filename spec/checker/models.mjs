// The models: every .cfg under models/, each with its expectation in its first lines. Decides what a model file means; runs nothing.
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const spec = fileURLToPath(new URL("..", import.meta.url));

/**
 * @typedef {object} Model
 * @property {string} name module/variant, as in the path of the file
 * @property {string} title
 * @property {string} expected "holds", or "<invariant> is violated"
 * @property {boolean} onDemand too large for every run of the tests
 * @property {number} states how many distinct states are explored until the verdict
 * @property {string} cfg the whole file
 * @property {string} module the whole specification
 * @property {readonly string[]} invariants
 */

/** @returns {readonly Model[]} */
export function allModels() {
  const files = readdirSync(join(spec, "models"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".cfg"));
  return files.sort().map((file) => readModel(join(spec, "models", file)));
}

/** @param {string} name @param {string} extension @returns {string} */
export function pathOf(name, extension) {
  return join(spec, "models", `${name}${extension}`);
}

/** @param {string} path @returns {Model} */
function readModel(path) {
  const cfg = readFileSync(path, "utf8");
  const module = basename(dirname(path));
  const [title = ""] = cfg.split("\n");
  return {
    name: `${module}/${basename(path, ".cfg")}`,
    title: title.replace(/^\\\* /, ""),
    expected: field(cfg, "expect", path),
    onDemand: field(cfg, "run", path) === "on demand",
    states: Number(field(cfg, "states", path)),
    cfg,
    module: readFileSync(join(spec, `${module}.tla`), "utf8"),
    invariants: (/^INVARIANTS (.+)$/m.exec(cfg)?.[1] ?? "").split(" "),
  };
}

/** @param {string} cfg @param {string} name @param {string} path */
function field(cfg, name, path) {
  const value = new RegExp(`^\\\\\\* ${name}: (.+)$`, "m").exec(cfg)?.[1];
  if (value === undefined) throw new Error(`${path} has no line "\\* ${name}: …"`);
  return value;
}
