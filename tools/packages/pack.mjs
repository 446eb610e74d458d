// Packs the published packages as they would be uploaded, and has them judged.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { pnpm } from "../go/pnpm.mjs";
import { Refusal } from "../go/refusal.mjs";
import { judge } from "./judge.mjs";
import { published } from "./published.mjs";

/** @typedef {{ readonly name: string, readonly tarball: string }} Packed */

/** Packs all of them, and says what the judges find. @param {string} directory */
export async function packAll(directory) {
  mkdirSync(directory, { recursive: true });
  /** @type {Packed[]} */
  const tarballs = [];
  for (const name of published) tarballs.push(await packed(name, directory));
  const wells = [];
  for (const { name, tarball } of tarballs) wells.push(report(name, await judge(name, tarball)));
  return { tarballs, well: wells.every((well) => well) };
}

/** @param {string} name @param {string} directory @returns {Promise<Packed>} */
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
