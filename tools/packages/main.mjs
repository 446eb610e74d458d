// `npm run packages [-- --out DIR] [-- --install [NAME…]]`: packs the published packages as they
// would be uploaded and judges the tarballs; keeps them in a folder, or publishes them to a
// registry of its own and installs and uses them from there.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { pnpm } from "../go/pnpm.mjs";
import { Refusal } from "../go/refusal.mjs";
import { installed } from "./installed.mjs";
import { judge } from "./judge.mjs";

/** In the order in which they can be published. */
const published = ["lock", "client", "cli", "guard", "gateway", "dev"];

try {
  process.exitCode = await packages(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof Refusal)) throw error;
  console.error(`palisade: ${error.message}`);
  process.exitCode = 1;
}

/** @param {readonly string[]} args @returns {Promise<number>} the exit code */
async function packages(args) {
  const { out, install, names } = chosen(args);
  const directory = out ?? mkdtempSync(join(tmpdir(), "palisade-packages-"));
  try {
    mkdirSync(directory, { recursive: true });
    const tarballs = [];
    for (const name of published) tarballs.push(await packed(name, directory));
    const wells = [];
    for (const { name, tarball } of tarballs) wells.push(report(name, await judge(name, tarball)));
    if (out !== undefined) console.log(`\n${tarballs.map(({ tarball }) => tarball).join("\n")}`);
    if (install) wells.push(await installed(tarballs, names));
    return wells.every((well) => well) ? 0 : 1;
  } finally {
    if (out === undefined) rmSync(directory, { recursive: true, force: true });
  }
}

/** @param {readonly string[]} args */
function chosen(args) {
  try {
    const options = /** @type {const} */ ({ out: { type: "string" }, install: { type: "boolean" } });
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    if (positionals.length > 0 && !values.install) throw new Error(`Unexpected argument '${positionals[0]}'`);
    return { out: values.out === undefined ? undefined : resolve(values.out), install: values.install === true, names: positionals };
  } catch (error) {
    const [reason] = /** @type {Error} */ (error).message.split(". ");
    throw new Refusal(`${reason}. Usage: npm run packages -- [--out DIR] [--install [name…]]`);
  }
}

/** @param {string} name @param {string} directory */
async function packed(name, directory) {
  const tarball = join(directory, `palisade-${name}.tgz`);
  const { code, output } = await run([...(await pnpm()), "pack", "--out", tarball], { output: "kept", cwd: inRoot("packages", name) });
  if (code !== 0) throw new Refusal(`@palisade/${name} cannot be packed:\n${output}`);
  return { name, tarball };
}

/** @param {string} name @param {readonly string[]} findings */
function report(name, findings) {
  const verdict = findings.length === 0 ? "publint and are-the-types-wrong find nothing" : `${findings.length} findings`;
  console.log(`@palisade/${name}: ${verdict}`);
  for (const finding of findings) console.log(`  ${finding}`);
  return findings.length === 0;
}
