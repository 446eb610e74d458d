// Publishes the packages to a registry of our own, installs them into empty folders as users do,
// and runs a program there against real servers: one row per package manager, Node, module system
// and TypeScript.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { pnpm } from "../go/pnpm.mjs";
import { Refusal } from "../go/refusal.mjs";
import { publish } from "../release/publish.mjs";
import { examplesIn } from "./examples.mjs";
import { quickstartIn } from "./quickstart.mjs";
import { fetched, startRegistry } from "./registry.mjs";

const YARN = "1.22.22";
const nodes = { "node 22": "22.22.0", "node 24": "24.21.0" };
const users = fileURLToPath(new URL("users/", import.meta.url));

/**
 * @typedef {object} Setting
 * @property {string} folder
 * @property {Record<string, string | undefined>} env
 * @property {readonly string[]} names
 */

/** Before anything is packed. @param {readonly string[]} chosen */
export function checkRows(chosen) {
  const unknown = chosen.find((name) => rows[name] === undefined);
  if (unknown !== undefined) throw new Refusal(`there is no row "${unknown}"; there are ${Object.keys(rows).join(", ")}.`);
}

/**
 * @param {readonly { name: string, tarball: string }[]} tarballs @param {readonly string[]} chosen rows; all when empty
 * @returns {Promise<boolean>} whether everything went well
 */
export async function installed(tarballs, chosen) {
  const folder = mkdtempSync(join(tmpdir(), "palisade-install-"));
  const registry = await startRegistry(folder);
  const home = join(folder, "home");
  mkdirSync(home);
  // As an empty home: no configuration of this machine's user takes part.
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    npm_config_userconfig: registry.userconfig,
    npm_config_registry: registry.url,
    npm_config_cache: join(folder, "cache"),
  };
  try {
    await publish(tarballs, { env, provenance: false });
    const servers = await startServers();
    try {
      let well = true;
      for (const name of chosen.length > 0 ? chosen : Object.keys(rows))
        well =
          (await perform(name, {
            folder,
            env: { ...env, ...servers.env },
            names: tarballs.map((one) => one.name).filter((one) => one !== "dev"),
          })) && well;
      return well;
    } finally {
      await servers.stop();
    }
  } finally {
    await registry.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} name @param {Setting} setting */
async function perform(name, setting) {
  const startedAt = performance.now();
  const folder = join(setting.folder, name.replaceAll(" ", "-"));
  mkdirSync(folder);
  try {
    const said = await rows[name]?.({ ...setting, folder });
    console.log(`✓ ${name.padEnd(22)} ${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s  ${said}`);
    return true;
  } catch (error) {
    console.log(`✗ ${name.padEnd(22)} ${/** @type {Error} */ (error).message}`);
    return false;
  }
}

/** @type {Readonly<Record<string, (setting: Setting) => Promise<string>>>} */
const rows = {
  npm: async (setting) => {
    await must(["npm", "install", ...packagesOf(setting)], at(setting));
    return await uses(setting, process.execPath);
  },
  pnpm: async (setting) => {
    await must([...(await pnpm()), "add", ...packagesOf(setting), "--store-dir", join(setting.folder, "..", "store")], at(setting));
    return await uses(setting, process.execPath);
  },
  yarn: async (setting) => {
    const yarn = await fetched("yarn", YARN, join("bin", "yarn.js"));
    await must([process.execPath, yarn, "add", "--non-interactive", ...packagesOf(setting)], at(setting));
    return await uses(setting, process.execPath);
  },
  ...Object.fromEntries(
    Object.entries(nodes).map(([name, version]) => [
      name,
      async (/** @type {Setting} */ setting) => {
        const node = await fetched(`node-${process.platform}-${process.arch}`, version, join("bin", "node"));
        await must(["npm", "install", ...packagesOf(setting)], at(setting));
        return await uses(setting, node);
      },
    ]),
  ),
  "lock alone": (setting) => sizeOf(setting, "lock", { packages: 12, megabytes: 4 }),
  "cli alone": (setting) => sizeOf(setting, "cli", { packages: 18, megabytes: 5 }),
  "client alone": (setting) => sizeOf(setting, "client", { packages: 1, megabytes: 0.5 }),
  "guard alone": (setting) => sizeOf(setting, "guard", { packages: 1, megabytes: 0.5 }),
  "gateway alone": (setting) => sizeOf(setting, "gateway", { packages: 160, megabytes: 40 }),
  // With the Postgres of this platform, as it is installed and not as it is fetched.
  "dev alone": (setting) => sizeOf(setting, "dev", { packages: 8, megabytes: 100 }),
  "typescript 5.2": (setting) => compiles(setting, "5.2.2", ["nodenext", "bundler"]),
  "typescript 5.9": (setting) => compiles(setting, "5.9.3", ["nodenext", "node20", "bundler"]),
  "typescript 7.0": (setting) => compiles(setting, "7.0.2", ["nodenext", "node20", "bundler"]),
  "esbuild cjs": (setting) => bundles(setting, ["--format=cjs", "--outfile=bundle.cjs"]),
  // What express requires, an ESM bundle has to get from somewhere.
  "esbuild esm": (setting) =>
    bundles(setting, [
      "--format=esm",
      "--outfile=bundle.mjs",
      "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    ]),
  examples: examplesIn,
  quickstart: quickstartIn,
};

/** @param {Setting} setting */
function at({ folder, env }) {
  return { cwd: folder, env };
}

/** @param {Setting} setting */
function packagesOf({ names }) {
  return names.map((name) => `@palisade/${name}`);
}

/** Both module systems, on one Node. @param {Setting} setting @param {string} node */
async function uses(setting, node) {
  const said = [];
  for (const file of ["use.mjs", "use.cjs"]) {
    cpSync(join(users, file), join(setting.folder, file));
    said.push((await must([node, file], at(setting))).trim());
  }
  return said.join("; ");
}

/** @param {Setting} setting @param {string} name @param {{ packages: number, megabytes: number }} most */
async function sizeOf(setting, name, most) {
  await must(["npm", "install", `@palisade/${name}`], at(setting));
  const modules = join(setting.folder, "node_modules");
  const packages = namesIn(JSON.parse(await must(["npm", "ls", "--all", "--json"], at(setting)))).size;
  const megabytes = bytesIn(modules) / 1e6;
  const said = `${packages} packages, ${megabytes.toFixed(1)} MB`;
  if (packages > most.packages || megabytes > most.megabytes)
    throw new Refusal(`${said}: more than ${most.packages} packages or ${most.megabytes} MB`);
  return said;
}

/**
 * @typedef {object} Tree
 * @property {string} [version]
 * @property {Record<string, Tree>} [dependencies]
 */

/** @param {Tree} tree @returns {Set<string>} */
function namesIn({ dependencies = {} }, found = new Set()) {
  for (const [name, one] of Object.entries(dependencies)) {
    if (one.version === undefined) continue; // An optional peer that is not there.
    found.add(`${name}@${one.version}`);
    namesIn(one, found);
  }
  return found;
}

/** @param {string} folder @returns {number} */
function bytesIn(folder) {
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => {
    const path = join(folder, entry.name);
    return sum + (entry.isDirectory() ? bytesIn(path) : entry.isFile() ? statSync(path).size : 0);
  }, 0);
}

/** Each program in one file, run where nothing is installed. @param {Setting} setting @param {readonly string[]} options */
async function bundles(setting, options) {
  await must(["npm", "install", ...packagesOf(setting), "pg@8.23.1", "esbuild@0.28.2"], at(setting));
  const output = String(options.find((option) => option.startsWith("--outfile="))).slice("--outfile=".length);
  const said = [];
  for (const file of ["bundled.mjs", "bundled-gateway.mjs"]) {
    cpSync(join(users, file), join(setting.folder, file));
    const esbuild = join("node_modules", ".bin", "esbuild");
    await must([esbuild, file, "--bundle", "--platform=node", "--log-level=warning", ...options], at(setting));
    const alone = `${setting.folder}-alone`; // Beside it: no node_modules above.
    mkdirSync(alone, { recursive: true });
    cpSync(join(setting.folder, output), join(alone, output));
    said.push((await must([process.execPath, output], { ...at(setting), cwd: alone })).trim());
  }
  return said.join("; ");
}

/** @param {Setting} setting @param {string} version @param {readonly string[]} modes */
async function compiles(setting, version, modes) {
  await must(["npm", "install", ...packagesOf(setting), `typescript@${version}`, "@types/node@20.19.43"], at(setting));
  writeFileSync(join(setting.folder, "package.json"), JSON.stringify({ private: true, type: "module" }));
  cpSync(join(users, "use.ts"), join(setting.folder, "use.ts"));
  for (const mode of modes) {
    const how = mode === "bundler" ? ["--module", "esnext", "--moduleResolution", "bundler"] : ["--module", mode];
    const strict = [
      "--strict",
      "--exactOptionalPropertyTypes",
      "--skipLibCheck",
      "false",
      "--noEmit",
      "--target",
      "es2022",
      "--lib",
      "es2022,esnext.disposable",
    ];
    await must(
      [process.execPath, join("node_modules", "typescript", "bin", "tsc"), ...how, ...strict, "--types", "node", "use.ts"],
      at(setting),
    );
  }
  return `strict, exactOptionalPropertyTypes, skipLibCheck false: ${modes.join(", ")}`;
}

/** @param {readonly string[]} command @param {{ cwd: string, env: Record<string, string | undefined> }} where */
async function must(command, where) {
  const { code, output } = await run(command, { output: "kept", ...where });
  if (code !== 0) throw new Refusal(`${command.slice(0, 4).join(" ")} ended with ${code}:\n${output}`);
  return output;
}

/** Real ones, as the tests have. */
async function startServers() {
  const { PostgresServer, RedisFleet } = /** @type {typeof import("../../packages/testkit/dist/index.js")} */ (
    await import(pathToFileURL(inRoot("packages", "testkit", "dist", "index.js")).href)
  );
  const [redis, postgres] = await Promise.all([RedisFleet.start({ nodes: 3 }), PostgresServer.start()]);
  return {
    env: { REDIS_URLS: redis.urls.join(","), DATABASE_URL: postgres.url },
    stop: async () => {
      await Promise.all([redis.stop(), postgres.stop()]);
    },
  };
}
