// Compiles the workspace or a part of it, incrementally, and whole where incremental would be
// wrong: tsc trusts its own records and does not see that an output was deleted.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inRoot } from "./checkout.mjs";
import { run } from "./child.mjs";
import { diskFull } from "./explain.mjs";
import { step } from "./progress.mjs";
import { Refusal } from "./refusal.mjs";

/** @param {string} project a folder with a tsconfig.json; what it refers to is compiled, too */
export async function build(project) {
  const tsc = [process.execPath, inRoot("node_modules", "typescript", "bin", "tsc"), "-b", inRoot(project)];
  const outputs = [...withReferences(project)].map((directory) => outputOf(directory)).filter((directory) => directory !== undefined);
  const command = outputs.every((directory) => existsSync(directory)) ? tsc : [...tsc, "--force"];
  const { code, output } = await step("compiling", () => run(command, { output: "kept" }));
  if (code !== 0) throw diskFull(output) ?? new Refusal(`the sources do not compile.\n${output}`);
}

/** @param {string} project @returns {Set<string>} */
function withReferences(project, found = new Set()) {
  if (found.has(project)) return found;
  found.add(project);
  for (const { path } of configuration(project).references ?? []) withReferences(join(project, path), found);
  return found;
}

/** @param {string} project */
function outputOf(project) {
  const { outDir } = configuration(project).compilerOptions ?? {};
  return outDir === undefined ? undefined : inRoot(project, outDir);
}

/**
 * @param {string} project
 * @returns {{ references?: { path: string }[], compilerOptions?: { outDir?: string } }}
 */
function configuration(project) {
  return JSON.parse(readFileSync(inRoot(project, "tsconfig.json"), "utf8"));
}
