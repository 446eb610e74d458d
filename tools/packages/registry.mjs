// A registry of our own on loopback (verdaccio), which passes on to the user's for everything but
// @palisade/*. What is published to it is gone with its folder.
import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { cache } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { step } from "../go/progress.mjs";
import { Refusal } from "../go/refusal.mjs";

const VERDACCIO = "6.5.0"; // The newest that runs on Node 20.
const READY_WITHIN_MS = 180_000;

/** @param {string} folder @returns {Promise<{ url: string, userconfig: string, stop: () => Promise<void> }>} */
export async function startRegistry(folder) {
  const program = await fetched("verdaccio", VERDACCIO, join("bin", "verdaccio"));
  const asked = async (/** @type {string} */ key) => (await run(["npm", "config", "get", key], { output: "kept" })).output;
  const upstream = /^https?:\/\/\S+$/m.exec(await asked("registry"))?.[0];
  // Where npm trusts a certificate that Node does not know, as behind a proxy of a company, so must
  // verdaccio: it answers 404 for all that it cannot fetch.
  const cafile = /^\/\S.*$/m.exec(await asked("cafile"))?.[0];
  const env = cafile === undefined ? process.env : { NODE_EXTRA_CA_CERTS: cafile, ...process.env };
  const port = await freePort();
  const config = join(folder, "verdaccio.json");
  mkdirSync(join(folder, "storage"), { recursive: true });
  writeFileSync(config, JSON.stringify(configuration(folder, upstream)));
  const child = spawn(process.execPath, [program, "--config", config, "--listen", `127.0.0.1:${port}`], {
    stdio: ["ignore", "pipe", "pipe"],
    env,
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  let complaints = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (complaints += chunk));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  const url = `http://127.0.0.1:${port}/`;
  await answers(`${url}-/ping`, () => child.exitCode !== null).catch(async () => {
    await stop();
    throw new Refusal(`the registry does not start (it ended: ${child.exitCode ?? child.signalCode ?? "no"}):\n${complaints}`);
  });
  const userconfig = join(folder, "npmrc");
  writeFileSync(userconfig, `registry=${url}\n//127.0.0.1:${port}/:_authToken=anybody\n`);
  return { url, userconfig, stop };
}

/** Anybody may publish @palisade/*: it listens on loopback for the length of one run. */
function configuration(/** @type {string} */ folder, /** @type {string | undefined} */ upstream) {
  const everybody = { access: "$all", publish: "$anonymous $authenticated", unpublish: "$all" };
  return {
    storage: join(folder, "storage"),
    // Two failures in a row would shut the user's registry out for five minutes.
    uplinks: { upstream: { url: upstream, maxage: "60m", timeout: "60s", max_fails: 20, fail_timeout: "1s" } },
    packages: { "@palisade/*": everybody, "**": { access: "$all", proxy: "upstream" } },
    auth: { htpasswd: { file: join(folder, "htpasswd") } },
    log: { type: "stderr", level: "warn" },
    web: { enable: false },
    max_body_size: "50mb",
  };
}

/**
 * A program of the npm registry, kept in this clone's cache.
 * @param {string} name @param {string} version @param {string} file
 */
export async function fetched(name, version, file) {
  const home = join(cache, `${name}-${version}`);
  mkdirSync(home, { recursive: true });
  // verdaccio asks for node-fetch by a tag, which not every mirror has.
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true, overrides: { "node-fetch": "2.6.7" } }));
  const install = ["npm", "install", "--prefix", home, "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error"];
  const { code, output } = await step(`fetching ${name} ${version}`, () => run([...install, `${name}@${version}`], { output: "kept" }));
  if (code !== 0) throw new Refusal(`${name} ${version} cannot be fetched:\n${output}`);
  return join(home, "node_modules", name, file);
}

/** @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
      server.close(() => resolve(port));
    });
  });
}

/** @param {string} url @param {() => boolean} isOver */
export async function answers(url, isOver) {
  for (const endsAt = performance.now() + READY_WITHIN_MS; performance.now() < endsAt && !isOver(); ) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}
