// Where the tools that we start may keep their caches: the user's HOME, or a folder in this clone
// when HOME is missing or cannot be written. Never creates a missing HOME: a daemon account has
// none for a reason.
import { accessSync, constants, existsSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { cache } from "./checkout.mjs";
import { Refusal } from "./refusal.mjs";

/** What npm, pnpm and we ourselves write below HOME; each must be writable where it exists. */
const places = ["", ".npm", ".cache", ".local", ".local/share", ".local/share/pnpm", ".local/state", ".config"];
const POINTS_INTO_HOME = /^(XDG_(CACHE|DATA|STATE|CONFIG)_HOME|PNPM_HOME|npm_config_(cache|prefix|store_dir))$/i;

/** Changes the environment that every child inherits. Returns what the user should be told. */
export function settleHome() {
  makeCache();
  const home = process.env.HOME || homedir();
  if (places.every((place) => writable(join(home, place), place === ""))) {
    process.env.HOME = home;
    return undefined;
  }
  const own = join(cache, "home");
  mkdirSync(own, { recursive: true });
  for (const name of Object.keys(process.env)) if (POINTS_INTO_HOME.test(name)) delete process.env[name];
  process.env.npm_config_userconfig ??= join(home, ".npmrc"); // the user's registry and credentials still count
  process.env.HOME = own;
  return `HOME (${home}) cannot be written, so caches go to ${own}`;
}

function makeCache() {
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
  } catch (error) {
    throw new Refusal(
      `${cache} cannot be written by this user (${code(error)}). Run as the owner of this clone, or clone it again as yourself.`,
    );
  }
}

/** @param {string} path @param {boolean} required */
function writable(path, required) {
  if (!existsSync(path)) return !required;
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return true;
  } catch (error) {
    return code(error) === undefined;
  }
}

/** @param {unknown} error */
function code(error) {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
