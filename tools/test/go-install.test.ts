// The committed lockfile is installed whole, whatever the user's own settings of npm and pnpm are,
// and once.
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test, vi } from "vitest";
import { installArguments } from "../go/install.mjs";
import { pnpm } from "../go/pnpm.mjs";
import { pathOf } from "./programs.js";

vi.setConfig({ testTimeout: 240_000 }); // Runs of pnpm, on a machine that may do twenty other things.

/** Each of these alone breaks `pnpm install --frozen-lockfile`, or lets it leave something out. */
const settings = {
  engine_strict: "true",
  auto_install_peers: "false",
  lockfile: "false",
  optional: "false",
  node_linker: "hoisted",
  shared_workspace_lockfile: "false",
};

/** A workspace with a peer, and an optional dependency that wants a Node that does not exist. */
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

/** On a file system of its own pnpm would leave a store in the root of that. */
const storeIn = (folder: string): NodeJS.ProcessEnv => ({ npm_config_store_dir: join(folder, "store") });

test("the user's own settings change nothing in what is installed", async () => {
  const folder = workspace();
  const [node = "", ...script] = await pnpm();
  const { npm_config_userconfig: _, ...env } = process.env;
  const run = (args: readonly string[], more: NodeJS.ProcessEnv = {}): string =>
    execFileSync(node, [...script, ...args], { cwd: folder, env: { ...env, ...storeIn(folder), ...more }, encoding: "utf8" });
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

test("what is installed is not installed again, and starts from nothing when that changed, though pnpm makes no folder for a package without dependencies", async () => {
  await pnpm();
  const clone = mkdtempSync(join(tmpdir(), "palisade-install-"));
  onTestFinished(() => rmSync(clone, { recursive: true }));
  const { packageManager } = JSON.parse(readFileSync(pathOf("../package.json"), "utf8"));
  const files = {
    "package.json": JSON.stringify({ name: "root", packageManager }),
    "packages/lonely/package.json": JSON.stringify({ name: "lonely" }),
    "pnpm-workspace.yaml": "packages: [packages/*]\npmOnFail: ignore\nupdateNotifier: false\n",
    // As pnpm writes it: it is part of what decides whether to install again.
    "pnpm-lock.yaml": "lockfileVersion: '9.0'\n\nimporters:\n\n  .: {}\n\n  packages/lonely: {}\n",
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(clone, dirname(path)), { recursive: true });
    writeFileSync(join(clone, path), text);
  }
  cpSync(pathOf("go"), join(clone, "tools", "go"), { recursive: true });
  // The pnpm that was fetched here, if one was.
  if (existsSync(pathOf("../.cache"))) symlinkSync(pathOf("../.cache"), join(clone, ".cache"));
  const module = JSON.stringify(pathToFileURL(join(clone, "tools", "go", "install.mjs")).href);
  const source = `const { install, isInstalled } = await import(${module}); await install(); console.log(isInstalled());`;
  const installs = (): string =>
    execFileSync(process.execPath, ["--input-type=module", "-e", source], { env: { ...process.env, ...storeIn(clone) }, encoding: "utf8" });
  expect(installs()).toBe("true\n");

  // Over another lockfile pnpm keeps what it had decided to skip, also where it is needed now.
  const leftover = join(clone, "node_modules", "leftover");
  writeFileSync(leftover, "");
  expect(installs()).toBe("true\n");
  expect(existsSync(leftover)).toBe(true);
  writeFileSync(join(clone, "packages", "lonely", "package.json"), JSON.stringify({ name: "lonely", version: "1.0.0" }));
  expect(installs()).toBe("true\n");
  expect(existsSync(leftover)).toBe(false);
});
