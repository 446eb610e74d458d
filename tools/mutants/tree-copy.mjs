// A private copy of this tree in a temporary folder, in which mutants are applied one after the
// other, built, and tested. Sources and what was built from them are copied, installed dependencies
// are linked. The tree itself is never written to.
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, extname, join, relative } from "node:path";
import { inRoot, root, run } from "../run.mjs";
import { mutated } from "./mutant.mjs";

/** Caches that vitest keeps for each tree. */
const privateModules = new Set([".vite", ".vite-temp", ".experimental-vitest-cache"]);
/**
 * By the ending of a file that is embedded into the sources, so that nothing is read from disk at
 * run time: what embeds it, and into which file.
 * @type {Readonly<Record<string, { readonly embedder: string, readonly embedded: string }>>}
 */
const embedding = {
  ".lua": { embedder: "packages/lock/scripts/embed-lua.mjs", embedded: "packages/lock/src/redis/lua.generated.ts" },
  ".sql": { embedder: "packages/guard/scripts/embed-sql.mjs", embedded: "packages/guard/src/sql.generated.ts" },
};
const tested = ["packages/lock/test", "packages/client", "packages/gateway", "packages/cli", "packages/testkit"];
const leftOut = new Set([".git", ".cache"]);
/** What vitest reports of a test that took too long, before the place where the test stands. */
const TIME_LIMIT = /^Error: STACK_TRACE_ERROR/;
/** Longer than any part of the suite takes, many times over. */
const LONGEST_MS = 1_200_000;

/**
 * What counts as red: a test that failed, by an assertion or by its own time limit. A file that could
 * not be loaded, an error outside of tests and a run without end are no verdict of a test.
 * @typedef {{ kind: "green" } | { kind: "red", title: string, file: string, message: string } | { kind: "unclear", why: string }} Finding
 * @typedef {{ status: string, fullName: string, failureMessages?: readonly string[] }} Assertion
 * @typedef {{ name: string, status: string, message: string, assertionResults: readonly Assertion[] }} FileReport
 */

export class TreeCopy {
  /** @param {string} folder where the copy is made */
  constructor(folder) {
    this.folder = folder;
    const filter = (/** @type {string} */ path) => !leftOut.has(basename(path)) && relative(root, path) !== "node_modules";
    cpSync(root, folder, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter });
    const modules = join(folder, "node_modules");
    mkdirSync(modules);
    // Entry by entry: links to packages of the workspace lead into the copy, all others to where
    // they are installed.
    for (const name of readdirSync(inRoot("node_modules")))
      if (!privateModules.has(name)) symlinkSync(inRoot("node_modules", name), join(modules, name));
  }

  /**
   * Changes the copy by all of them, builds it, and gives it to `work`; afterwards it is as it was
   * before.
   * @template T @param {readonly import("./mutant.mjs").Mutant[]} mutants
   * @param {(built: { readonly ok: boolean, readonly output: string }) => Promise<T>} work
   */
  async with(mutants, work) {
    const scripts = new Set(mutants.flatMap(({ file }) => embedding[extname(file)] ?? []));
    const changed = new Set([...mutants.map(({ file }) => file), ...[...scripts].map(({ embedded }) => embedded)]);
    const originals = [...changed].map((file) => ({ path: join(this.folder, file), text: this.read(file) }));
    for (const mutant of mutants) writeFileSync(join(this.folder, mutant.file), mutated(mutant, this.read(mutant.file)));
    try {
      let built = { ok: true, output: "" };
      for (const { embedder } of scripts) if (built.ok) built = await this.#node(embedder);
      return await work(built.ok ? await this.build() : built);
    } finally {
      for (const { path, text } of originals) writeFileSync(path, text);
    }
  }

  /** Compiles what the tests of the published packages load; incremental. */
  build() {
    return this.#node(join("node_modules", "typescript", "bin", "tsc"), "-b", ...tested);
  }

  /** The text of a file of the copy. @param {string} file from its root */
  read(file) {
    return readFileSync(join(this.folder, file), "utf8");
  }

  /** @param {readonly string[]} filters what vitest looks for in the paths of test files @param {string} [shard] "1/2": their first half */
  async test(filters, shard) {
    const report = join(this.folder, ".mutant-report.json");
    rmSync(report, { force: true });
    const vitest = [join("node_modules", "vitest", "vitest.mjs"), "run", "--project", "unit", "--project", "real"];
    const options = ["--bail=1", "--reporter=json", `--outputFile=${report}`, `--maxWorkers=${availableParallelism()}`];
    const { ok, output } = await this.#node(...vitest, ...options, ...(shard === undefined ? [] : [`--shard=${shard}`]), ...filters);
    return findingOf(existsSync(report) ? JSON.parse(readFileSync(report, "utf8")).testResults : [], { ok, output, folder: this.folder });
  }

  /** @param {...string} args */
  async #node(...args) {
    const { code, output } = await run([process.execPath, ...args], { output: "kept", cwd: this.folder, limitMs: LONGEST_MS });
    return { ok: code === 0, output };
  }
}

/**
 * @param {readonly FileReport[]} files
 * @param {{ readonly ok: boolean, readonly output: string, readonly folder: string }} ended
 * @returns {Finding}
 */
export function findingOf(files, { ok, output, folder }) {
  for (const { name, assertionResults } of files) {
    const failed = assertionResults.find(({ status }) => status === "failed");
    if (failed === undefined) continue;
    const message = (failed.failureMessages?.[0] ?? "").replace(TIME_LIMIT, "it did not end within its time limit");
    return { kind: "red", title: failed.fullName, file: name.replace(`${folder}/`, ""), message };
  }
  if (ok && files.some(({ assertionResults }) => assertionResults.length > 0)) return { kind: "green" };
  const broken = files.find(({ status }) => status === "failed");
  const why = broken === undefined ? output.trim().split("\n").slice(-15).join("\n") : `${broken.name}: ${broken.message}`;
  return { kind: "unclear", why: `no test failed, and yet the run did: ${why}` };
}
