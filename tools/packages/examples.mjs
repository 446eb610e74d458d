// Copies the examples into a folder, installs them there from the registry of this run, and checks each on
// real servers, beside the installed gateway.
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServing } from "../../packages/testkit/dist/index.js";
import { inRoot, succeed } from "../run.mjs";

/** @param {{ cwd: string, env: Record<string, string | undefined> }} place @returns {Promise<string>} what there is to say */
export async function examplesIn({ cwd, env }) {
  cpSync(inRoot("examples"), join(cwd, "examples"), { recursive: true, filter: (path) => !path.includes("node_modules") });
  cpSync(fileURLToPath(new URL("users/examples.mjs", import.meta.url)), join(cwd, "check.mjs"));
  const { version } = JSON.parse(readFileSync(inRoot("package.json"), "utf8"));
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
