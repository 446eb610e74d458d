// A registry of our own on loopback (verdaccio), which passes on to the user's for everything but
// @palisade/*. What is published to it is gone with its folder.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startNode, takePort } from "../../packages/testkit/dist/index.js";
import { cache, succeed } from "../run.mjs";

const VERDACCIO = "6.5.0"; // The newest that runs on Node 20.

/** @param {string} folder */
export async function startRegistry(folder) {
  const program = await fetched("verdaccio", VERDACCIO, "bin/verdaccio");
  const asked = (/** @type {string} */ key) => succeed(["npm", "config", "get", key]);
  // Anybody may publish @palisade/*: it listens on loopback for the length of one run.
  const everybody = { access: "$all", publish: "$anonymous $authenticated", unpublish: "$all" };
  // npm may say more than what it is asked for.
  const upstream = /^https?:\/\/\S+$/m.exec(await asked("registry"))?.[0];
  const settings = {
    storage: join(folder, "storage"),
    // Two failures in a row would shut the user's registry out for five minutes.
    uplinks: { upstream: { url: upstream, maxage: "60m", timeout: "60s", max_fails: 20, fail_timeout: "1s" } },
    packages: { "@palisade/*": everybody, "**": { access: "$all", proxy: "upstream" } },
    auth: { htpasswd: { file: join(folder, "htpasswd") } },
    log: { type: "stdout", level: "info" },
    web: { enable: false },
    max_body_size: "50mb",
  };
  mkdirSync(settings.storage);
  const config = join(folder, "verdaccio.json");
  writeFileSync(config, JSON.stringify(settings));
  // Where npm trusts a certificate that Node does not know, as behind a proxy of a company, so must
  // verdaccio: it answers 404 for all that it cannot fetch.
  const cafile = /^\/\S.*$/m.exec(await asked("cafile"))?.[0];
  const env = cafile === undefined ? {} : { NODE_EXTRA_CA_CERTS: cafile };
  const port = await takePort();
  const child = startNode(program, ["--config", config, "--listen", `127.0.0.1:${port}`], { env, name: "the registry" });
  await child.says(/http address/, 180_000);
  const userconfig = join(folder, "npmrc");
  writeFileSync(userconfig, `registry=http://127.0.0.1:${port}/\n//127.0.0.1:${port}/:_authToken=anybody\n`);
  return {
    env: { npm_config_userconfig: userconfig, npm_config_registry: `http://127.0.0.1:${port}/` },
    stop: () => child.kill(),
  };
}

/** A program of the npm registry, kept in this clone's cache. @param {string} name @param {string} version @param {string} file */
export async function fetched(name, version, file) {
  const home = join(cache, `${name}-${version}`);
  mkdirSync(home, { recursive: true });
  // verdaccio asks for node-fetch by a tag, which not every mirror has.
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true, overrides: { "node-fetch": "2.6.7" } }));
  const install = ["npm", "install", "--prefix", home, "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  await succeed([...install, `${name}@${version}`], { title: `fetching ${name} ${version}` });
  return join(home, "node_modules", name, file);
}
