// Uploads tarballs to a registry, each once: one that is there already is left alone, so that a
// release that broke off is simply repeated.
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";
import { published } from "../packages/published.mjs";

/**
 * @typedef {object} Way
 * @property {Record<string, string | undefined>} env npm's configuration: registry and credentials
 * @property {boolean} provenance whether the registry is told which workflow built them
 */

/** @param {readonly { name: string, tarball: string }[]} tarballs @param {Way} way */
export async function publish(tarballs, { env, provenance }) {
  for (const { name, tarball } of tarballs) {
    const { version } = manifestOf(name);
    if (await isThere(`@palisade/${name}@${version}`, env)) {
      console.log(`@palisade/${name}@${version} is there already`);
      continue;
    }
    const command = ["npm", "publish", tarball, "--access", "public", `--provenance=${provenance}`];
    const { code, output } = await run(command, { output: "kept", cwd: tmpdir(), env });
    if (code !== 0) throw new Refusal(`@palisade/${name}@${version} was not published:\n${output}`);
    console.log(`@palisade/${name}@${version} published${provenance ? ", with provenance" : ""}`);
  }
}

/**
 * Throws where provenance cannot be had: a registry compares the repository of the manifest with
 * the workflow that published it.
 */
export function mayProve() {
  const without = published.filter((name) => manifestOf(name).repository === undefined);
  if (without.length === 0) return;
  throw new Refusal(
    `provenance needs the public address of this repository in the field "repository" of packages/{${without.join(",")}}/package.json; ` +
      `there is none. Without provenance: npm run release -- --publish --no-provenance`,
  );
}

/** @param {string} name @returns {{ version: string, repository?: unknown }} */
function manifestOf(name) {
  return JSON.parse(readFileSync(inRoot("packages", name, "package.json"), "utf8"));
}

/** @param {string} spec @param {Record<string, string | undefined>} env */
async function isThere(spec, env) {
  const { code, output } = await run(["npm", "view", spec, "version", "--json", "--loglevel=error"], {
    output: "kept",
    cwd: tmpdir(),
    env,
  });
  if (code === 0) return output.trim() !== "";
  if (output.includes("E404")) return false;
  throw new Refusal(`the registry cannot be asked for ${spec}:\n${output}`);
}
