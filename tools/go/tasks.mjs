// What each task runs once the clone is prepared.
import { existsSync } from "node:fs";
import { inRoot } from "./checkout.mjs";
import { run } from "./child.mjs";
import { Refusal } from "./refusal.mjs";
import { inScratchFolder } from "./scratch.mjs";

const modules = (/** @type {string[]} */ ...path) => inRoot("node_modules", ...path);
const vitest = (/** @type {readonly string[]} */ args) =>
  inScratchFolder((env) => node([modules("vitest", "vitest.mjs"), "run", ...args], env));
const biome = [modules("@biomejs", "biome", "bin", "biome"), "check", "--error-on-warnings"];

/**
 * @typedef {object} Task
 * @property {string | undefined} builds the folder that has to be compiled for it, with what it
 * refers to; "." is everything @property {false} [installs] it needs none of the dependencies
 * @property {(args: readonly string[]) => Promise<number>} run the exit code
 */

/** @type {Readonly<Record<string, Task>>} */
export const tasks = {
  // For people who have just cloned: they do not wait for tests and benchmarks to be compiled.
  demo: program("packages/demo-client/dist/main.js", "packages/demo-client"),
  dev: program("packages/dev/dist/main.js", "packages/dev"),
  bench: program("packages/bench/dist/main.js", "packages/bench"),
  faults: program("packages/robustness/dist/main.js"),
  soak: program("packages/robustness/dist/soak.js"),
  mutants: program("tools/mutants/main.mjs"),
  packages: program("tools/packages/main.mjs"),
  release: program("tools/release/main.mjs"),
  openapi: program("tools/openapi/main.mjs"),
  pictures: program("packages/gateway/scripts/pictures.mjs"),
  site: program("tools/site/main.mjs"),
  fresh: { installs: false, builds: undefined, run: async (args) => (await import("../fresh/main.mjs")).fresh(args) },
  test: { builds: ".", run: (args) => vitest([...usualProjects(args), ...args]) },
  citus: { builds: ".", run: (args) => vitest(["--config", inRoot("vitest.citus.config.ts"), ...args]) },
  lint: { builds: undefined, run: () => node(biome) },
  fix: { builds: undefined, run: () => node([...biome, "--write"]) },
  build: { builds: ".", run: async () => 0 },
  check: { builds: ".", run: check },
};

/** All but the models and the long ones, unless projects or files are named. @param {readonly string[]} args */
function usualProjects(args) {
  const isNamed = args.some((arg) => arg.startsWith("--project") || !arg.startsWith("-"));
  return isNamed ? [] : ["unit", "real"].map((name) => `--project=${name}`);
}

/**
 * Both parts always run, so that one look shows everything there is to repair.
 * @param {readonly string[]} args
 */
async function check(args) {
  const style = await node(biome);
  const unit = await vitest(["--project", "unit", ...args]);
  return style || unit;
}

/** @param {string} file @param {string} builds @returns {Task} */
function program(file, builds = ".") {
  return {
    builds,
    run: async (args) => {
      if (!existsSync(inRoot(file)))
        throw new Refusal(`there is no ${file} in this checkout, so there is nothing to run for this task yet.`);
      return node([inRoot(file), ...args]);
    },
  };
}

/** @param {readonly string[]} args */
async function node(args, env = process.env) {
  return (await run([process.execPath, ...args], { output: "shown", env })).code;
}
