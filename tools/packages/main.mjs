// `npm run packages [-- --out DIR] [-- --install [NAME…]]`: packs the published packages as they
// would be uploaded and judges the tarballs; keeps them in a folder, or publishes them to a
// registry of its own and installs and uses them from there.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Refusal } from "../go/refusal.mjs";
import { checkRows, installed } from "./installed.mjs";
import { packAll } from "./pack.mjs";

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
    const { tarballs, well } = await packAll(directory);
    if (out !== undefined) console.log(`\n${tarballs.map(({ tarball }) => tarball).join("\n")}`);
    const isUsable = install ? await installed(tarballs, names) : true;
    return well && isUsable ? 0 : 1;
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
    checkRows(positionals);
    return { out: values.out === undefined ? undefined : resolve(values.out), install: values.install === true, names: positionals };
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const [reason] = /** @type {Error} */ (error).message.split(". ");
    throw new Refusal(`${reason}. Usage: npm run packages -- [--out DIR] [--install [name…]]`);
  }
}
