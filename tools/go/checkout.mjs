// Where things are in this clone: reads the two facts that are written down
// elsewhere (workspace packages, pinned pnpm).
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const cache = join(root, ".cache");

/** @param {...string} parts */
export const inRoot = (...parts) => join(root, ...parts);

/** The directories of the workspace packages, relative to the root. */
export function packageDirectories() {
  return readdirSync(inRoot("packages"))
    .map((name) => join("packages", name))
    .filter((directory) => existsSync(inRoot(directory, "package.json")))
    .sort();
}

/** "pnpm@10.34.9+sha512.<hex>" → version, and the same hash in the form npm records it. */
export function pinnedPnpm() {
  const { packageManager } = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
  const [, version = "", hex = ""] = /^pnpm@([^+]+)\+sha512\.([0-9a-f]{128})$/.exec(packageManager) ?? [];
  if (version === "") throw new Error(`packageManager in package.json is not pnpm@<version>+sha512.<hex>: ${packageManager}`);
  return { version, integrity: `sha512-${Buffer.from(hex, "hex").toString("base64")}` };
}
