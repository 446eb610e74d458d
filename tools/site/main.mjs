// `npm run site [-- --out DIR | -- --pages]`: builds the documentation as a site, from the
// repository's own pages and the comments of what the packages export, checks every link of the
// result, and what its search finds first; or writes the pages of the repository that are made of other sources.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { inRoot, perform, readArguments, succeed } from "../run.mjs";
import { deadLinks } from "./dead-links.mjs";
import { badHits } from "./first-hits.mjs";
import { errorsPage, settingsPage } from "./reference-pages.mjs";
import { beginningWith, imported, stagePages } from "./stage.mjs";

const site = inRoot("site");
const build = join(site, ".build");

await perform(async () => {
  const options = /** @type {const} */ ({ out: { type: "string" }, pages: { type: "boolean" } });
  const { values } = readArguments(options, "site -- [--out DIR | --pages]");
  if (values.pages) return await writePages();
  await install();
  rmSync(join(build, "pages"), { recursive: true, force: true });
  writeFileSync(join(build, "sidebar.json"), JSON.stringify(stagePages(join(build, "pages"))));
  for (const [name, [entry = "", first = ""]] of Object.entries(imported)) await describe(name, entry, first);
  await node("vitepress/bin/vitepress.js", "build", ".");
  const faults = [
    ...deadLinks(join(build, "dist")).map((link) => `dead link: ${link}`),
    ...(await badHits(join(build, "dist"), process.env.SITE_BASE ?? "/")).map((hit) => `search: ${hit}`),
  ];
  for (const fault of faults) console.error(fault);
  const out = values.out === undefined ? join(build, "dist") : resolve(values.out);
  if (values.out !== undefined) cpSync(join(build, "dist"), out, { recursive: true });
  console.log(`${out}${faults.length === 0 ? "" : `: ${faults.length} faults`}`);
  return faults.length === 0 ? 0 : 1;
});

/** Writes the pages of the repository that are made of other sources. */
async function writePages() {
  /** @param {string} path */
  const built = (path) => import(pathToFileURL(inRoot("packages", "gateway", "dist", path)).href);
  const { settings } = await built("settings/settings.js");
  const { Problem, problemCodes } = await built("http/problems.js");
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
  const title = "installing VitePress and TypeDoc";
  await succeed(["npm", "ci", "--no-audit", "--no-fund", "--prefer-offline"], { title, cwd: site });
  mkdirSync(build, { recursive: true });
  writeFileSync(stamp, locked);
}

/** A page for what users import under a name. @param {string} name @param {string} entry @param {string} first */
async function describe(name, entry, first) {
  const out = join(build, "pages", "api", name);
  const options = ["--options", "typedoc.json", "--entryPoints", inRoot("packages", entry), "--name", `@palisade/${name}`, "--out", out];
  await node("typedoc/bin/typedoc", ...options);
  const page = join(out, "README.md");
  const text = readFileSync(page, "utf8").replace("\n### default\n", `\n### ${first}\n`);
  writeFileSync(page, beginningWith(first, text));
}

/** @param {string} program @param {...string} args */
async function node(program, ...args) {
  await succeed([process.execPath, join("node_modules", program), ...args], { title: program, cwd: site });
}
