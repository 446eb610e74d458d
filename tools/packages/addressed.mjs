// What a packed package says of where it comes from. On a registry there is no tree around it: the links of its README
// lead to the repository's page at the tag of its version, and its manifest names the repository, as provenance demands.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import { succeed } from "../run.mjs";

/** @param {string} readme @param {string} directory of the package in the repository @param {string} page of the repository's root */
function linked(readme, directory, page) {
  return readme.replace(/\]\((?!#|[a-z]+:)([^)\s]+)/g, (_, to) => `](${page}/${posix.join(directory, to)}`);
}

/** Rewrites the packed file. @param {string} file @param {string} directory @param {string} repository as https://github.com/owner/name */
export async function addressed(file, directory, repository) {
  const folder = mkdtempSync(join(tmpdir(), "palisade-addressed-"));
  await succeed(["tar", "-xzf", file, "-C", folder]);
  const [manifestFile, readme] = [join(folder, "package", "package.json"), join(folder, "package", "README.md")];
  const manifest = JSON.parse(readFileSync(manifestFile, "utf8"));
  manifest.repository = { type: "git", url: `git+${repository}.git`, directory };
  writeFileSync(manifestFile, `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(readme, linked(readFileSync(readme, "utf8"), directory, `${repository}/blob/v${manifest.version}`));
  await succeed(["tar", "-czf", file, "-C", folder, "package"]);
  rmSync(folder, { recursive: true });
}
