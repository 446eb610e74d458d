// `npm run site [-- --out DIR | -- --pages]`: builds the documentation as a site, from the
// repository's own pages and the comments of what the packages export, and checks every link of the
// result; or writes the pages of the repository that are made of other sources.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { step } from "../go/progress.mjs";
import { Refusal } from "../go/refusal.mjs";
import { deadLinks } from "./dead-links.mjs";
import { errorsPage, settingsPage } from "./reference-pages.mjs";
import { stagePages } from "./stage.mjs";

/** What users import, and its declarations in `packages`. */
const entries = {
  lock: "lock/dist/index.d.ts",
  "lock/testing": "lock/dist/testing/fake-locker.d.ts",
  client: "client/dist/index.d.ts",
  guard: "guard/dist/index.d.ts",
  gateway: "gateway/dist/index.d.ts",
};
const site = inRoot("site");
const build = join(site, ".build");

try {
  process.exitCode = await buildSite(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(`palisade: ${error.message}`);
  process.exitCode = 1;
}

/** @param {readonly string[]} args @returns {Promise<number>} the exit code */
async function buildSite(args) {
  const { values } = parseArgs({ args: [...args], options: { out: { type: "string" }, pages: { type: "boolean" } } });
  if (values.pages) return await writePages();
  await install();
  rmSync(join(build, "pages"), { recursive: true, force: true });
  const sidebar = stagePages(join(build, "pages"));
  writeFileSync(join(build, "sidebar.json"), JSON.stringify(sidebar));
  for (const [name, entry] of Object.entries(entries)) await step(`reading what @palisade/${name} exports`, () => describe(name, entry));
  await step("building the site", () => must([join("node_modules", "vitepress", "bin", "vitepress.js"), "build", "."]));
  const dead = deadLinks(join(build, "dist"));
  for (const link of dead) console.error(`dead link: ${link}`);
  const out = values.out === undefined ? join(build, "dist") : resolve(values.out);
  if (values.out !== undefined) cpSync(join(build, "dist"), out, { recursive: true });
  console.log(`${out}${dead.length === 0 ? "" : `: ${dead.length} dead links`}`);
  return dead.length === 0 ? 0 : 1;
}

/** Writes the pages of the repository that are made of other sources. */
async function writePages() {
  /** @param {string} path */
  const built = (path) => import(pathToFileURL(inRoot("packages", "gateway", "dist", path)).href);
  const { settings } = await built("settings/settings.js");
  const { Problem, problemCodes } = await built("http/problem.js");
  const read = (/** @type {string[]} */ ...path) => readFileSync(inRoot(...path), "utf8");
  writeFileSync(inRoot("docs", "settings.md"), settingsPage(settings));
  const errors = errorsPage({
    problems: problemCodes.map((/** @type {string} */ code) => new Problem(code, "")),
    wire: read("spec", "wire.md"),
    lock: read("packages", "lock", "README.md"),
    client: read("packages", "client", "src", "results.ts"),
    ownTables: read("docs", "own-tables.md"),
  });
  writeFileSync(inRoot("docs", "errors.md"), errors);
  return 0;
}

/** Apart from everything else: neither users nor tests of the packages need a site. */
async function install() {
  const locked = readFileSync(join(site, "package-lock.json"), "utf8");
  const stamp = join(build, "installed");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === locked) return;
  const { code, output } = await step("installing VitePress and TypeDoc", () =>
    run(["npm", "ci", "--no-audit", "--no-fund", "--prefer-offline"], { output: "kept", cwd: site }),
  );
  if (code !== 0) throw new Refusal(`the dependencies of the site cannot be installed:\n${output}`);
  mkdirSync(build, { recursive: true });
  writeFileSync(stamp, locked);
}

/** A page for what users import under a name. @param {string} name @param {string} entry */
async function describe(name, entry) {
  const out = join(build, "pages", "api", name);
  const options = ["--options", "typedoc.json", "--entryPoints", inRoot("packages", entry), "--name", `@palisade/${name}`, "--out", out];
  await must([join("node_modules", "typedoc", "bin", "typedoc"), ...options]);
}

/** @param {readonly string[]} command */
async function must(command) {
  const { code, output } = await run([process.execPath, ...command], { output: "kept", cwd: site });
  if (code !== 0) throw new Refusal(`${command[0]} ended with ${code}:\n${output}`);
}
