// Makes node_modules match the lockfile, and decides when that is already so: a stamp of everything
// the result depends on, written last. An installation that was interrupted leaves its marker
// behind; the next one starts from nothing, because a half-linked package looks like a whole one.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inRoot, packageDirectories } from "./checkout.mjs";
import { run } from "./child.mjs";
import { explained } from "./explain.mjs";
import { pnpm } from "./pnpm.mjs";
import { step } from "./progress.mjs";
import { Refusal } from "./refusal.mjs";

const stamp = inRoot("node_modules", ".palisade-installed");
const marker = inRoot("node_modules", ".palisade-installing");
/**
 * What decides whether the lockfile is installed as committed. Given on the command line, where
 * neither ~/.npmrc nor the environment of the user overrides it: with `optional=false` there, pnpm
 * leaves out the compiler and says nothing.
 */
const lockfileSettings = {
  "auto-install-peers": true,
  "confirm-modules-purge": false,
  "engine-strict": false,
  lockfile: true,
  "node-linker": "isolated",
  optional: true,
  "shared-workspace-lockfile": true,
};
/** A dead registry is known after two quick retries, a silent one after 30 s, not minutes. */
const impatience = ["--fetch-timeout=10000", "--fetch-retries=2", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=2000"];

export async function install() {
  const wanted = fingerprint();
  if (isInstalled(wanted)) return;
  const first = !existsSync(inRoot("node_modules"));
  const command = [...(await pnpm()), ...installArguments()];
  await step(`installing dependencies${first ? " (first run)" : ""}`, async () => {
    // Over another lockfile pnpm leaves out what it had skipped for another platform, also where a
    // package needs it now.
    if (existsSync(marker) || existsSync(stamp)) await removeAll();
    mkdirSync(inRoot("node_modules"), { recursive: true });
    rmSync(stamp, { force: true });
    writeFileSync(marker, "");
    const { code, output } = await run(command, { output: "kept" });
    if (code !== 0) throw explain(output);
    // pnpm makes none for a package without dependencies.
    for (const directory of moduleDirectories()) mkdirSync(directory, { recursive: true });
  });
  writeFileSync(stamp, wanted);
  rmSync(marker);
}

/** What follows `pnpm`. */
export function installArguments() {
  const settings = Object.entries(lockfileSettings).map(([name, value]) => `--config.${name}=${value}`);
  return ["install", "--frozen-lockfile", "--prefer-offline", "--prod=false", "--reporter=append-only", ...settings, ...impatience];
}

/** Nothing has changed since the last installation. */
export function isInstalled(wanted = fingerprint()) {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === wanted && moduleDirectories().every((directory) => existsSync(directory));
}

function fingerprint() {
  const hash = createHash("sha256").update([process.platform, process.arch, process.versions.modules].join());
  const manifests = [
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "package.json",
    ...packageDirectories().map((directory) => join(directory, "package.json")),
  ];
  for (const file of manifests) hash.update(`\0${file}\0`).update(readFileSync(inRoot(file)));
  return hash.digest("hex");
}

function moduleDirectories() {
  return ["", ...packageDirectories()].map((directory) => inRoot(directory, "node_modules"));
}

async function removeAll() {
  for (const directory of moduleDirectories()) await rm(directory, { recursive: true, force: true });
}

/** @param {string} output */
function explain(output) {
  if (output.includes("ERR_PNPM_OUTDATED_LOCKFILE")) {
    return new Refusal(
      'pnpm-lock.yaml does not fit the package.json files. Run "pnpm install" with the pinned version and commit the lockfile.',
    );
  }
  return explained("the dependencies", output) ?? new Refusal(`pnpm could not install the dependencies:\n${output}`);
}
