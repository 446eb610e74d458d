// Copies every example into one folder, installs them there from the registry of this run in one
// go, and checks each on real servers, beside the installed gateway.
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServing } from "../../packages/testkit/dist/index.js";
import { inRoot, succeed } from "../run.mjs";

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

/** @param {{ cwd: string, env: Record<string, string | undefined> }} place @returns {Promise<string>} what there is to say */
export async function examplesIn({ cwd, env }) {
  cpSync(inRoot("examples"), join(cwd, "examples"), { recursive: true, filter: (path) => !path.includes("node_modules") });
  cpSync(fileURLToPath(new URL("users/examples/", import.meta.url)), join(cwd, "checks"), { recursive: true });
  const { version } = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
  const dependencies = { "@palisade/gateway": version };
  writeFileSync(join(cwd, "package.json"), JSON.stringify({ private: true, workspaces: ["examples/*"], dependencies }));
  // Scripts of dependencies would download engines that the examples do not use.
  await succeed(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd, env });
  const gateway = await startServing({
    program: join(cwd, "node_modules/@palisade/gateway/dist/main.js"),
    env: { ...env, PALISADE_REDIS_URLS: env.REDIS_URLS },
  });
  try {
    for (const [example, check] of Object.entries(checks)) {
      const said = await succeed([process.execPath, join("checks", check), example], { cwd, env: { ...env, GATEWAY_URL: gateway.url } });
      console.log(`  ${example.padEnd(20)} ${said}`);
    }
  } finally {
    await gateway.child.stop();
  }
  return `${Object.keys(checks).length} examples, in each a stale write is refused`;
}
