// `npm run release -- patch|minor|major|VERSION` gives all packages their next version and
// CHANGELOG.md its section, and makes the commit and the tag. `npm run release -- --publish` packs
// what is tagged and uploads it; in CI with provenance.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { inRoot, packageDirectories } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";
import { released, sectionOf } from "./changelog.mjs";
import { mayProve, publish } from "./publish.mjs";
import { nextVersion } from "./version.mjs";

const usage = "Usage: npm run release -- patch|minor|major|VERSION, then npm run release -- --publish [--no-provenance]";
const CHANGELOG = "CHANGELOG.md";

try {
  await release(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refusal || error instanceof RangeError)) throw error;
  console.error(`palisade: ${error.message}`);
  process.exitCode = 1;
}

/** @param {readonly string[]} args */
async function release(args) {
  const { wanted, provenance } = chosen(args);
  if ((await git("status", "--porcelain")) !== "") throw new Refusal("there are changes that are not committed: commit them first.");
  if (wanted === undefined) await upload(provenance);
  else await prepare(nextVersion(currentVersion(), wanted));
}

/** @param {readonly string[]} args */
function chosen(args) {
  const options = /** @type {const} */ ({ publish: { type: "boolean" }, "no-provenance": { type: "boolean" } });
  const { values, positionals } = parsed(args, options);
  const [wanted, ...rest] = positionals;
  if (rest.length > 0 || (wanted === undefined) !== (values.publish === true)) throw new Refusal(usage);
  // GitHub lends its workflows the identity that a registry wants to see.
  const isProvable = process.env.ACTIONS_ID_TOKEN_REQUEST_URL !== undefined;
  return { wanted, provenance: isProvable && values["no-provenance"] !== true };
}

/** @param {readonly string[]} args @param {{ publish: { type: "boolean" }, "no-provenance": { type: "boolean" } }} options */
function parsed(args, options) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    const [reason] = /** @type {Error} */ (error).message.split(". ");
    throw new Refusal(`${reason}. ${usage}`);
  }
}

/** @param {string} version */
async function prepare(version) {
  const day = new Date().toISOString().slice(0, 10);
  const changelog = released(readFileSync(inRoot(CHANGELOG), "utf8"), { version, day });
  const manifests = ["package.json", ...packageDirectories().map((directory) => join(directory, "package.json"))];
  for (const manifest of manifests) {
    const text = readFileSync(inRoot(manifest), "utf8");
    writeFileSync(inRoot(manifest), text.replace(/^( {2}"version": )"[^"]+"/m, `$1"${version}"`));
  }
  // Examples are what a stranger copies: they ask for the version that they are released with.
  for (const example of readdirSync(inRoot("examples")).filter((name) => existsSync(inRoot("examples", name, "package.json")))) {
    const manifest = inRoot("examples", example, "package.json");
    writeFileSync(manifest, readFileSync(manifest, "utf8").replace(/("@palisade\/[\w-]+": )"\^[^"]+"/g, `$1"^${version}"`));
  }
  writeFileSync(inRoot(CHANGELOG), changelog);
  await must(process.execPath, inRoot("packages", "gateway", "scripts", "embed-sql.mjs"));
  await git("commit", "--all", "--message", `release ${version}`);
  await git("tag", "--annotate", `v${version}`, "--message", sectionOf(changelog, version));
  console.log(`committed and tagged v${version}. Push both (git push --follow-tags): the workflow "release" publishes what is tagged.`);
}

/** @param {boolean} provenance */
async function upload(provenance) {
  const version = currentVersion();
  const tags = (await git("tag", "--points-at", "HEAD")).split("\n");
  if (!tags.includes(`v${version}`)) throw new Refusal(`this commit does not have the tag v${version}: only what is tagged is published.`);
  if (provenance) mayProve();
  const { packAll } = await import("../packages/pack.mjs");
  const directory = mkdtempSync(join(tmpdir(), "palisade-release-"));
  try {
    const { tarballs, well } = await packAll(directory);
    if (!well) throw new Refusal("the judges found something: nothing was published.");
    await publish(tarballs, { env: process.env, provenance });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** @returns {string} */
function currentVersion() {
  return JSON.parse(readFileSync(inRoot("package.json"), "utf8")).version;
}

/** @param {...string} args */
function git(...args) {
  return must("git", ...args);
}

/** @param {...string} command */
async function must(...command) {
  const { code, output } = await run(command, { output: "kept" });
  if (code !== 0) throw new Refusal(`${command.slice(0, 2).join(" ")} ended with ${code}:\n${output}`);
  return output.trim();
}
