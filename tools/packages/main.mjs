// `npm run packages [-- --out DIR] [-- --repository URL] [-- --install [ROW…]]`: packs the packages that
// users install, and has publint and are-the-types-wrong judge the files; keeps them in a folder, with
// the address of the repository in them, or publishes the packages to a registry of its own, installs
// them into empty folders as users do, and runs a program there against real servers.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { PostgresServer, RedisFleet, startServing } from "../../packages/testkit/dist/index.js";
import { inRoot, packageDirectories, perform, pnpm, Refusal, readArguments, succeed } from "../run.mjs";
import { addressed } from "./addressed.mjs";
import { ownTableIn, quickstartIn } from "./quickstart.mjs";
import { fetched, startRegistry } from "./registry.mjs";

/**
 * Where a row works. @typedef {object} Place
 * @property {string} cwd an empty folder
 * @property {Record<string, string | undefined>} env of a user with an empty home, whose registry is ours
 * @property {string} packed the folder of the packed files
 */

const manifestOf = (/** @type {string} */ folder) => JSON.parse(readFileSync(inRoot(folder, "package.json"), "utf8"));
/** What users install. */
const published = packageDirectories().filter((folder) => !manifestOf(folder).private);
const libraries = published.map((folder) => manifestOf(folder).name).filter((name) => name !== "@palisade/dev");
const users = fileURLToPath(new URL("users/", import.meta.url));

/** @type {Readonly<Record<string, (place: Place) => Promise<string>>>} */
const rows = {
  npm: (place) => uses(place, ["npm", "install"]),
  pnpm: async (place) => uses(place, [...(await pnpm()), "add", "--store-dir", join(place.cwd, "..", "store")]),
  yarn: async (place) => uses(place, [process.execPath, await fetched("yarn", "1.22.22", "bin/yarn.js"), "add", "--non-interactive"]),
  "node 22": async (place) => uses(place, ["npm", "install"], await nodeOf("22.22.0")),
  "node 24": async (place) => uses(place, ["npm", "install"], await nodeOf("24.21.0")),
  "lock alone": (place) => sizeOf(place, "lock", { packages: 12, megabytes: 4 }),
  "cli alone": (place) => sizeOf(place, "cli", { packages: 18, megabytes: 5 }),
  "client alone": (place) => sizeOf(place, "client", { packages: 1, megabytes: 0.5 }),
  "guard alone": (place) => sizeOf(place, "guard", { packages: 1, megabytes: 0.5 }),
  "gateway alone": (place) => sizeOf(place, "gateway", { packages: 160, megabytes: 40 }),
  // With the Postgres of this platform, as it is installed and not as it is fetched.
  "dev alone": (place) => sizeOf(place, "dev", { packages: 8, megabytes: 100 }),
  "typescript 5.2": (place) => compiles(place, "5.2.2", ["nodenext", "bundler"]),
  "typescript 5.9": (place) => compiles(place, "5.9.3", ["nodenext", "node20", "bundler"]),
  "typescript 7.0": (place) => compiles(place, "7.0.2", ["nodenext", "node20", "bundler"]),
  "esbuild cjs": (place) => bundles(place, "bundle.cjs", ["--format=cjs"]),
  // What express requires, an ESM bundle has to get from somewhere.
  "esbuild esm": (place) =>
    bundles(place, "bundle.mjs", [
      "--format=esm",
      "--banner:js=import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    ]),
  examples: examplesIn,
  quickstart: quickstartIn,
  "own table": ownTableIn,
};

await perform(async () => {
  const options = /** @type {const} */ ({ out: { type: "string" }, repository: { type: "string" }, install: { type: "boolean" } });
  const { values, positionals } = readArguments(options, "packages -- [--out DIR] [--repository URL] [--install [ROW…]]");
  const unknown = positionals.find((name) => rows[name] === undefined || !values.install);
  if (unknown !== undefined) throw new Refusal(`there is no row "${unknown}" of --install; there are ${Object.keys(rows).join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "palisade-packages-"));
  try {
    const packed = resolve(values.out ?? join(folder, "packed"));
    await pack(packed, values.repository);
    if (values.out !== undefined)
      console.log(
        readdirSync(packed)
          .map((file) => join(packed, file))
          .join("\n"),
      );
    if (!values.install) return 0;
    return (await install(positionals.length > 0 ? positionals : Object.keys(rows), folder, packed)) ? 0 : 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

/** As they would be uploaded, and judged. @param {string} folder @param {string} [repository] */
async function pack(folder, repository) {
  mkdirSync(folder, { recursive: true });
  const chosen = published.map((directory) => `--filter=./${directory}`);
  await succeed([...(await pnpm()), ...chosen, "pack", "--out", join(folder, "%s.tgz")], { title: "packing" });
  for (const directory of published) {
    const { name, exports } = manifestOf(directory);
    const file = join(folder, `${name.replace("@palisade/", "palisade-")}.tgz`);
    if (repository !== undefined) await addressed(file, directory, repository);
    await succeed([process.execPath, inRoot("node_modules/publint/src/cli.js"), "run", file, "--strict"], { title: `publint of ${name}` });
    // ESM only, which Node's own require loads as well (20.19, 22.12). A program has no types.
    const attw = [process.execPath, inRoot("node_modules/@arethetypeswrong/cli/dist/index.js"), file, "--profile", "esm-only"];
    if ("." in exports) await succeed([...attw, "--exclude-entrypoints", "./package.json"], { title: `attw of ${name}` });
    console.log(`${name}: publint and are-the-types-wrong find nothing`);
  }
}

/** @param {readonly string[]} names @param {string} folder @param {string} packed */
async function install(names, folder, packed) {
  const registry = await startRegistry(folder);
  const home = join(folder, "home");
  mkdirSync(home);
  // No configuration of this machine's user takes part.
  const env = { PATH: process.env.PATH, HOME: home, npm_config_cache: join(folder, "cache"), ...registry.env };
  const servers = await Promise.all([RedisFleet.start({ nodes: 3 }), PostgresServer.start()]);
  try {
    await succeed([...(await pnpm()), "--recursive", "publish", "--no-git-checks"], {
      title: "publishing",
      env: { ...env, HOME: process.env.HOME },
    });
    const [redis, postgres] = servers;
    let well = true;
    for (const name of names) {
      const startedAt = performance.now();
      const cwd = join(folder, name.replaceAll(" ", "-"));
      mkdirSync(cwd);
      const place = { cwd, packed, env: { ...env, REDIS_URLS: redis.urls.join(","), DATABASE_URL: postgres.url } };
      const said = await rows[name]?.(place).catch((error) => {
        well = false;
        return `FAILED: ${error.message}`;
      });
      console.log(`${name.padEnd(15)} ${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s  ${said}`);
    }
    return well;
  } finally {
    await Promise.all([registry.stop(), ...servers.map((server) => server.stop())]);
  }
}

/** Another Node, from npm. @param {string} version */
function nodeOf(version) {
  return fetched(`node-${process.platform}-${process.arch}`, version, "bin/node");
}

/** Both module systems. @param {Place} place @param {readonly string[]} add @param {string} [node] */
async function uses(place, add, node = process.execPath) {
  await succeed([...add, ...libraries], place);
  const said = [];
  for (const file of ["use.mjs", "use.cjs"]) {
    cpSync(join(users, file), join(place.cwd, file));
    said.push(await succeed([node, file], place));
  }
  return said.join("; ");
}

/** @param {Place} place @param {string} name @param {{ packages: number, megabytes: number }} most */
async function sizeOf(place, name, most) {
  await succeed(["npm", "install", `@palisade/${name}`], place);
  const listed = (await succeed(["npm", "ls", "--all", "--parseable"], place)).split("\n").filter((line) => line.includes("node_modules"));
  const files = readdirSync(join(place.cwd, "node_modules"), { recursive: true, withFileTypes: true });
  const bytes = files.reduce((sum, file) => sum + (file.isFile() ? statSync(join(file.parentPath, file.name)).size : 0), 0);
  const said = `${listed.length} packages, ${(bytes / 1e6).toFixed(1)} MB`;
  if (listed.length > most.packages || bytes > most.megabytes * 1e6)
    throw new Refusal(`${said}: more than ${most.packages} packages or ${most.megabytes} MB`);
  return said;
}

/** Each program in one file, run where nothing is installed. @param {Place} place @param {string} file @param {readonly string[]} options */
async function bundles(place, file, options) {
  await succeed(["npm", "install", ...libraries, "pg@8.23.1", "esbuild@0.28.2"], place);
  const alone = `${place.cwd}-alone`; // Beside it: no node_modules above.
  mkdirSync(alone);
  const said = [];
  for (const program of ["bundled.mjs", "bundled-gateway.mjs"]) {
    cpSync(join(users, program), join(place.cwd, program));
    const esbuild = ["node_modules/.bin/esbuild", program, "--bundle", "--platform=node", "--log-level=warning"];
    await succeed([...esbuild, `--outfile=${join(alone, file)}`, ...options], place);
    said.push(await succeed([process.execPath, file], { ...place, cwd: alone }));
  }
  return said.join("; ");
}

/** @param {Place} place @param {string} version @param {readonly string[]} modes */
async function compiles(place, version, modes) {
  await succeed(["npm", "install", ...libraries, `typescript@${version}`, "@types/node@20.19.43"], place);
  writeFileSync(join(place.cwd, "package.json"), JSON.stringify({ private: true, type: "module" }));
  cpSync(join(users, "use.ts"), join(place.cwd, "use.ts"));
  const strict = "--strict --exactOptionalPropertyTypes --skipLibCheck false --noEmit --target es2022 --lib es2022,esnext.disposable";
  for (const mode of modes) {
    const how = mode === "bundler" ? ["--module", "esnext", "--moduleResolution", "bundler"] : ["--module", mode];
    await succeed([process.execPath, "node_modules/typescript/bin/tsc", ...how, ...strict.split(" "), "--types", "node", "use.ts"], place);
  }
  return `strict, exactOptionalPropertyTypes, skipLibCheck false: ${modes.join(", ")}`;
}

/** In one folder, each checked on real servers, beside the installed gateway. @param {Place} place */
async function examplesIn({ cwd, env }) {
  cpSync(inRoot("examples"), join(cwd, "examples"), { recursive: true, filter: (path) => !path.includes("node_modules") });
  cpSync(join(users, "examples.mjs"), join(cwd, "check.mjs"));
  const { version } = manifestOf("");
  const dependencies = { "@palisade/gateway": version };
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true, workspaces: ["examples"], dependencies }));
  await succeed(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd, env });
  const gateway = await startServing({
    program: join(cwd, "node_modules/@palisade/gateway/dist/main.js"),
    env: { ...env, PALISADE_REDIS_URLS: env.REDIS_URLS },
  });
  try {
    const said = await succeed([process.execPath, "check.mjs"], { cwd, env: { ...env, GATEWAY_URL: gateway.url } });
    console.log(said);
    return `${said.split("\n").length} examples, in each a stale write is refused`;
  } finally {
    await gateway.child.stop();
  }
}
