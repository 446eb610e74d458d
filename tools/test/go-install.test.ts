// The committed lockfile is installed whole, whatever the user's own settings of npm and pnpm are.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { installArguments } from "../go/install.mjs";
import { pnpm } from "../go/pnpm.mjs";

/** Each of these alone breaks `pnpm install --frozen-lockfile`, or lets it leave something out. */
const settings = {
  engine_strict: "true",
  auto_install_peers: "false",
  lockfile: "false",
  optional: "false",
  node_linker: "hoisted",
  shared_workspace_lockfile: "false",
};

/**
 * A workspace with an optional dependency, which wants a Node that does not exist, and a peer; both
 * are folders in it.
 */
function workspace(): string {
  const folder = mkdtempSync(join(tmpdir(), "palisade-install-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const packages = {
    ".": { optionalDependencies: { optional: "file:./optional" }, dependencies: { dependent: "file:./dependent" } },
    optional: { version: "1.0.0" },
    dependent: { version: "1.0.0", engines: { node: ">=99" }, peerDependencies: { optional: "*" } },
  };
  for (const [name, manifest] of Object.entries(packages)) {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, "package.json"), JSON.stringify({ name: name === "." ? "root" : name, ...manifest }));
  }
  writeFileSync(join(folder, "pnpm-workspace.yaml"), "pmOnFail: ignore\nupdateNotifier: false\n");
  return folder;
}

test("the user's own settings change nothing in what is installed", async () => {
  const folder = workspace();
  const [node = "", ...script] = await pnpm();
  const { npm_config_userconfig: _, ...env } = process.env;
  const run = (args: readonly string[], more: NodeJS.ProcessEnv = {}): string =>
    execFileSync(node, [...script, ...args], { cwd: folder, env: { ...env, ...more }, encoding: "utf8" });
  run(["install", "--lockfile-only", "--offline"]);

  const home = join(folder, "home");
  mkdirSync(home);
  const lines = Object.entries(settings).map(([name, value]) => `${name.replaceAll("_", "-")}=${value}\n`);
  writeFileSync(join(home, ".npmrc"), lines.join(""));
  const variables = Object.entries(settings).map(([name, value]) => [`npm_config_${name}`, value]);
  for (const circumstances of [{ HOME: home }, Object.fromEntries(variables)]) {
    rmSync(join(folder, "node_modules"), { recursive: true, force: true });
    run(installArguments(), circumstances);
    expect(["optional", "dependent", ".pnpm"].filter((name) => !existsSync(join(folder, "node_modules", name)))).toEqual([]);
  }
});
