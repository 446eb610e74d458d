// A private copy of this tree in a temporary folder, in which mutants are applied, one after the
// other. Sources and what was built from them are copied, installed dependencies are linked. The
// tree itself is never written to.
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, extname, join, relative } from "node:path";
import { inRoot, root } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
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
  ".sql": { embedder: "packages/gateway/scripts/embed-sql.mjs", embedded: "packages/gateway/src/store/migrations.generated.ts" },
};
const tested = ["packages/lock/test", "packages/gateway/test", "packages/guard/test", "packages/cli/test"];
const leftOut = new Set([".git", ".cache"]);

export class TreeCopy {
  /** @param {string} folder where the copy is made */
  constructor(folder) {
    this.folder = folder;
    cpSync(root, folder, {
      recursive: true,
      preserveTimestamps: true,
      verbatimSymlinks: true,
      filter: (path) => isCopied(relative(root, path)),
    });
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
   * @template T
   * @param {readonly import("./mutant.mjs").Mutant[]} mutants
   * @param {(built: { readonly ok: boolean, readonly output: string }) => Promise<T>} work
   * @returns {Promise<T>}
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

  /** @param {...string} args */
  async #node(...args) {
    const { code, output } = await run([process.execPath, ...args], { output: "kept", cwd: this.folder });
    return { ok: code === 0, output };
  }
}

/** @param {string} path from the root */
function isCopied(path) {
  return !leftOut.has(basename(path)) && path !== "node_modules";
}
