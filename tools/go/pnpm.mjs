// Finds the one pnpm version this workspace is pinned to, or fetches it into this clone:
// the exact version, and for a fetched copy the pinned hash. It is then run as `node
// pnpm.cjs`, one process that dies with us; `npx pnpm` would be a chain of three.
import { existsSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { cache, pinnedPnpm } from "./checkout.mjs";
import { run } from "./child.mjs";
import { explained } from "./explain.mjs";
import { step } from "./progress.mjs";
import { Refusal } from "./refusal.mjs";

const pinned = pinnedPnpm();
const home = join(cache, `pnpm-${pinned.version}`);
const entry = join("bin", "pnpm.cjs");

/** @returns {Promise<readonly string[]>} the command to put before pnpm's arguments */
export async function pnpm() {
  const script = onPath() ?? fetched() ?? (await fetch());
  return [process.execPath, script];
}

/** A pnpm on PATH is read, not asked: asked, it might download another version of itself. */
function onPath() {
  for (const directory of (process.env.PATH ?? "").split(delimiter)) {
    const link = join(directory, "pnpm");
    if (!existsSync(link)) continue;
    const packageRoot = dirname(dirname(realpathSync(link)));
    const manifest = join(packageRoot, "package.json");
    if (!existsSync(manifest)) continue;
    const { name, version } = JSON.parse(readFileSync(manifest, "utf8"));
    if (name === "pnpm" && version === pinned.version) return join(packageRoot, entry);
  }
  return undefined;
}

function fetched() {
  const record = join(home, "node_modules", ".package-lock.json"); // npm writes it last, so a half-fetched copy has none
  if (!existsSync(record)) return undefined;
  const { integrity } = JSON.parse(readFileSync(record, "utf8")).packages["node_modules/pnpm"];
  if (integrity !== pinned.integrity) {
    throw new Refusal(
      `the registry gave a pnpm ${pinned.version} whose hash is not the one pinned in package.json; nothing of it was run.`,
    );
  }
  return join(home, "node_modules", "pnpm", entry);
}

async function fetch() {
  rmSync(home, { recursive: true, force: true });
  const options = [
    "--no-save",
    "--no-audit",
    "--no-fund",
    "--no-update-notifier",
    "--ignore-scripts",
    "--prefer-offline",
    "--loglevel=error",
  ];
  const impatience = ["--fetch-retries=1", "--fetch-retry-mintimeout=500", "--fetch-timeout=10000"];
  const command = ["npm", "install", "--prefix", home, ...options, ...impatience, `pnpm@${pinned.version}`];
  const { code, output } = await step(`fetching pnpm ${pinned.version}`, () => run(command, { output: "kept" })).catch((error) => {
    if (error.code === "ENOENT") throw new Refusal("npm is not on PATH; it comes with Node and is needed to fetch pnpm.");
    throw error;
  });
  const script = code === 0 ? fetched() : undefined;
  if (script === undefined)
    throw explained(`pnpm ${pinned.version}`, output) ?? new Refusal(`npm could not install pnpm ${pinned.version}:\n${output}`);
  return script;
}
