// Makes the one file that is published: the gateway, the lock and what starts servers, without
// their 140 packages, so that the first start of a stranger is short. Two folders deep, as the
// compiled sources are, because what is bundled looks for its package from there.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));

await build({
  entryPoints: [at("../dist/main.js")],
  outfile: at("../bundle/bin/palisade-dev.mjs"),
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  legalComments: "linked",
  logLevel: "warning",
  // What express requires, an ESM bundle has to get from somewhere.
  banner: { js: "import { createRequire as palisadeRequire } from 'node:module'; const require = palisadeRequire(import.meta.url);" },
  // Containers are for tests; nothing here starts one.
  external: ["testcontainers", "pg-native", "vitest"],
});
