// A private copy of this tree in a temporary folder, in which mutants are made, one after the other. Decides what a copy consists of: sources and what was built from
// them are copied, installed dependencies are linked. Must never write into the tree that it copies.
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join, relative } from "node:path";
import { inRoot, root } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { mutated } from "./mutant.mjs";

/** Of these vitest keeps its own for each tree. */
const privateModules = new Set([".vite", ".vite-temp"]);
const tested = ["packages/lock/test", "packages/gateway/test"];
const leftOut = new Set([".git", ".cache"]);

export class Workshop {
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
    // Entry by entry: the links of the packages then lead to the packages of the copy, and what is not a package of ours to where it is installed.
    for (const name of readdirSync(inRoot("node_modules")))
      if (!privateModules.has(name)) symlinkSync(inRoot("node_modules", name), join(modules, name));
  }

  /**
   * Changes the copy, builds it, and gives it to `work`; afterwards it is as it was before.
   * @template T
   * @param {import("./mutant.mjs").Mutant} mutant
   * @param {(built: { readonly ok: boolean, readonly output: string }) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async with(mutant, work) {
    const path = join(this.folder, mutant.file);
    const original = readFileSync(path, "utf8");
    writeFileSync(path, mutated(mutant, original));
    try {
      return await work(await this.build());
    } finally {
      writeFileSync(path, original);
    }
  }

  /** Everything that the tests of the published packages load; the rest of the tree has no say here. Fast where little has changed. */
  async build() {
    const embedded = await this.#node(join("packages", "lock", "scripts", "embed-lua.mjs"));
    if (!embedded.ok) return embedded;
    return this.#node(join("node_modules", "typescript", "bin", "tsc"), "-b", ...tested);
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
