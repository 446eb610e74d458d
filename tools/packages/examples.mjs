// Copies every example into one folder, installs them there from the registry of this run in one
// go, and checks each on real servers.
import { spawn } from "node:child_process";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inRoot } from "../go/checkout.mjs";
import { run } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";
import { answers, freePort } from "./registry.mjs";

/** The program that checks each; it gets the name of the example. */
export const checks = {
  "express-accounts": "accounts.mjs",
  "fastify-accounts": "accounts.mjs",
  "cron-once": "cron-once.mjs",
  "job-worker": "job-worker.mjs",
  "bulk-import": "bulk-import.mjs",
  transfer: "transfer.mjs",
  cells: "cells.mjs",
  "own-tables-pg": "own-tables.mjs",
  "own-tables-drizzle": "own-tables.mjs",
  "own-tables-knex": "own-tables.mjs",
  "own-tables-prisma": "own-tables.mjs",
  "other-languages": "other-languages.mjs",
};

/** @typedef {{ cwd: string, env: Record<string, string | undefined> }} Where */

/**
 * @param {{ folder: string, env: Record<string, string | undefined> }} setting
 * @returns {Promise<string>} what there is to say
 */
export async function examplesIn({ folder, env }) {
  const where = { cwd: folder, env };
  cpSync(inRoot("examples"), join(folder, "examples"), { recursive: true, filter: (path) => !path.includes("node_modules") });
  cpSync(fileURLToPath(new URL("users/examples/", import.meta.url)), join(folder, "checks"), { recursive: true });
  const { version } = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
  const dependencies = { "@palisade/gateway": `^${version}` };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true, workspaces: ["examples/*"], dependencies }));
  // Scripts of dependencies would download engines that the examples do not use.
  await must(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], where);
  await checkAll(where);
  return `${Object.keys(checks).length} examples, in each a stale write is refused`;
}

/** Beside one gateway. @param {Where} where */
async function checkAll(where) {
  const gateway = await startGateway(where);
  try {
    for (const [example, check] of Object.entries(checks)) {
      const startedAt = performance.now();
      const env = { ...where.env, GATEWAY_URL: gateway.url };
      const said = await must([process.execPath, join("checks", check), example], { ...where, env });
      console.log(`  ${example.padEnd(20)} ${((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)} s  ${said.trim()}`);
    }
  } finally {
    await gateway.stop();
  }
}

/** The installed program, which migrates the database. @param {Where} where */
async function startGateway({ cwd, env }) {
  const [port, adminPort] = [await freePort(), await freePort()];
  const program = join(cwd, "node_modules", ".bin", "palisade-gateway");
  const settings = { PORT: String(port), ADMIN_PORT: String(adminPort), PALISADE_REDIS_URLS: env.REDIS_URLS, PALISADE_LOG_LEVEL: "error" };
  const child = spawn(program, { cwd, env: { ...env, ...settings }, stdio: ["ignore", "inherit", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  await answers(`http://127.0.0.1:${adminPort}/ready`, () => child.exitCode !== null).catch(async (error) => {
    await stop();
    throw new Refusal(`the installed gateway does not start: ${error.message}`);
  });
  return { url: `http://127.0.0.1:${port}`, stop };
}

/** @param {readonly string[]} command @param {Where} where */
async function must(command, where) {
  const { code, output } = await run(command, { output: "kept", ...where });
  if (code !== 0) throw new Refusal(`${command.slice(0, 4).join(" ")} ended with ${code}:\n${output}`);
  return output;
}
