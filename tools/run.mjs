// Entry of every npm script: `node tools/run.mjs <task> [arguments]`. Prepares this clone (pinned
// pnpm, dependencies, compiled code) where it is not prepared yet, runs the task, and leaves nothing
// behind: no process, no file below TMPDIR. Needs Node and its npm, and no dependency.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { homedir, constants as os, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

/** @typedef {Record<string, string | undefined>} Env @typedef {readonly string[]} Words */

export const root = fileURLToPath(new URL("..", import.meta.url));
export const inRoot = (/** @type {string[]} */ ...parts) => join(root, ...parts);
export const cache = inRoot(".cache");
/** A failure the reader can act on: printed as one sentence, without a stack. */
export class Refusal extends Error {}
export class Interrupted extends Error {}

const vitest = [inRoot("node_modules/vitest/vitest.mjs"), "run"];
const biome = [inRoot("node_modules/@biomejs/biome/bin/biome"), "check", "--error-on-warnings"];
const usual = (/** @type {Words} */ args) =>
  args.some((arg) => arg.startsWith("--project") || !arg.startsWith("-")) ? [] : ["--project=unit", "--project=real"];
const program = (/** @type {string} */ file, builds = ".") => ({ builds, commands: (/** @type {Words} */ args) => [[file, ...args]] });

/** @type {Record<string, { builds?: string, commands: (args: Words) => Words[] }>} all commands run, and any failure counts */
const tasks = {
  demo: program("packages/demo-client/dist/main.js", "packages/demo-client"),
  dev: program("packages/dev/dist/main.js", "packages/dev"),
  bench: program("packages/bench/dist/main.js", "packages/bench"),
  faults: program("packages/robustness/dist/main.js"),
  mutants: program("tools/mutants/main.mjs"),
  packages: program("tools/packages/main.mjs"),
  openapi: program("tools/openapi/main.mjs"),
  site: program("tools/site/main.mjs"),
  test: { builds: ".", commands: (args) => [[...vitest, ...usual(args), ...args]] },
  citus: { builds: ".", commands: (args) => [[...vitest, "--config", "vitest.citus.config.ts", ...args]] },
  check: { builds: ".", commands: (args) => [biome, [...vitest, "--project", "unit", ...args]] },
  lint: { commands: () => [biome] },
  fix: { commands: () => [[...biome, "--write"]] },
  build: { builds: ".", commands: () => [] },
};

/** Children end with us, however we end: by a signal, by kill -9 (they see another parent), or with npm (we do). */
const diesWithParent = "data:text/javascript,const p=process.ppid;setInterval(()=>p===process.ppid||process.exit(1),250).unref()";
/** @type {Set<import("node:child_process").ChildProcess>} */
const children = new Set();
let ended = 0;
let endedAt = 0;

/** Asks the children to end, and kills them when asked again or after ten seconds. @param {NodeJS.Signals} signal */
export function interrupt(signal, code = 128 + os.signals[signal]) {
  const again = ended !== 0;
  if (again && performance.now() - endedAt < 700) return; // npm passes on the Ctrl-C that the terminal has sent here as well.
  [ended, endedAt] = [ended || code, performance.now()];
  for (const child of children) kill(child, again ? "SIGKILL" : signal);
  if (!again) setTimeout(() => interrupt("SIGKILL"), 10_000).unref();
}

/** @param {{ pid?: number | undefined }} child @param {NodeJS.Signals} signal */
function kill({ pid }, signal) {
  try {
    if (pid !== undefined) process.kill(signal === "SIGKILL" ? -pid : pid, signal);
  } catch {} // It is gone.
}

/**
 * Runs one command in a process group of its own, which ends with it.
 * @param {Words} command @param {{ output: "shown" | "kept", limitMs?: number, env?: Env, cwd?: string }} options
 * @returns {Promise<{ code: number, output: string }>} code is 128 + n when a signal ended it
 */
export async function run([file = "", ...args], { output, limitMs, env = process.env, cwd = root }) {
  if (ended !== 0) throw new Interrupted();
  const tether = file === process.execPath ? ["--import", diesWithParent] : [];
  /** @type {import("node:child_process").SpawnOptions} */
  const options = { cwd, env, detached: true, stdio: output === "shown" ? "inherit" : ["ignore", "pipe", "pipe"] };
  const child = spawn(file, [...tether, ...args], options);
  children.add(child);
  const limit = limitMs === undefined ? undefined : setTimeout(() => kill(child, "SIGKILL"), limitMs);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (text) => (said += text));
  return await new Promise((resolve, reject) => {
    child.once("error", reject).once("exit", () => {
      clearTimeout(limit);
      children.delete(child);
      kill(child, "SIGKILL");
    });
    child.once("close", (code, signal) => resolve({ code: code ?? 128 + os.signals[signal ?? "SIGTERM"], output: said }));
  });
}

/** Runs it, and says what takes long. @template T @param {string} title @param {() => Promise<T>} work */
export async function step(title, work) {
  const said = setTimeout(() => console.error(`palisade: ${title}…`), 2_000);
  return await work().finally(() => clearTimeout(said));
}

/**
 * What a command printed that must succeed.
 * @param {Words} command @param {{ title?: string, cwd?: string, env?: Env, limitMs?: number }} [options]
 */
export async function succeed(command, { title = command.slice(0, 4).join(" "), ...options } = {}) {
  const { code, output } = await step(title, () => run(command, { output: "kept", ...options }));
  if (code !== 0) throw new Refusal(`${title} failed (${code}):\n${output.split("\n").slice(-40).join("\n")}`);
  return output.trim();
}

/** The command to put before pnpm's arguments. tools/pnpm/package-lock.json pins it by its hash, and npm compares that. */
export async function pnpm() {
  const home = inRoot("tools", "pnpm");
  const settings = ["--package-lock=true", "--ignore-scripts", "--engine-strict=false", "--no-audit", "--no-fund", "--fetch-retries=2"];
  if (!existsSync(join(home, "node_modules", ".package-lock.json")))
    await succeed(["npm", "ci", ...settings], { title: "fetching pnpm", cwd: home });
  return [process.execPath, join(home, "node_modules", "pnpm", "bin", "pnpm.cjs")];
}

/** On the command line neither ~/.npmrc nor the environment of the user overrides what decides the installation. */
export const installArguments = ["install", "--frozen-lockfile", "--prefer-offline", "--prod=false", "--reporter=append-only"].concat(
  ["auto-install-peers", "lockfile", "optional", "shared-workspace-lockfile"].map((name) => `--config.${name}=true`),
  ["--config.engine-strict=false", "--config.confirm-modules-purge=false", "--config.node-linker=isolated", "--fetch-timeout=10000"],
);

const isPackage = (/** @type {string} */ folder) => existsSync(inRoot(folder, "package.json"));
export const packageDirectories = () =>
  readdirSync(inRoot("packages"))
    .map((name) => join("packages", name))
    .filter(isPackage);

/** A stamp of everything the result depends on is written last; without it, an installation starts from nothing. */
async function install() {
  const hash = createHash("sha256").update([process.platform, process.arch, process.versions.modules].join());
  const folders = ["", ...packageDirectories()];
  for (const file of ["pnpm-lock.yaml", "pnpm-workspace.yaml", ...folders.map((folder) => join(folder, "package.json"))])
    hash.update(readFileSync(inRoot(file)));
  const [stamp, wanted] = [inRoot("node_modules", ".palisade"), hash.digest("hex")];
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  for (const folder of folders) rmSync(inRoot(folder, "node_modules"), { recursive: true, force: true });
  await succeed([...(await pnpm()), ...installArguments], { title: "installing dependencies (first run)" });
  writeFileSync(stamp, wanted);
}

/** One run at a time prepares this clone; a lock whose owner is gone is taken away. @param {() => Promise<void>} work */
export async function inTurn(work, lock = join(cache, "preparing")) {
  while (!take(lock)) await sleep(100);
  await work().finally(() => rmSync(lock, { force: true }));
}

/** @param {string} lock */
function take(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EEXIST") throw new Refusal(`${lock} cannot be written: ${error}`);
    if (existsSync(lock) && !isRunning(Number(readFileSync(lock, "utf8")))) rmSync(lock, { force: true });
    return false;
  }
}

/** @param {number} pid */
export function isRunning(pid) {
  try {
    return process.kill(pid || 1, 0);
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === "EPERM";
  }
}

/** Where HOME is missing or cannot be written, the caches of npm and pnpm go into this clone. */
function settleHome() {
  mkdirSync(cache, { recursive: true });
  try {
    const home = process.env.HOME || homedir();
    const places = ["", ".npm", ".cache", ".local", ".local/share", ".config"].map((place) => join(home, place));
    for (const place of places) if (place === places[0] || existsSync(place)) accessSync(place, constants.W_OK | constants.X_OK);
  } catch {
    // npm tells its scripts where it keeps things, below the HOME that cannot be written.
    for (const name of Object.keys(process.env))
      if (/^(XDG_\w+_HOME|PNPM_HOME|npm_config_(cache|prefix|store_dir))$/i.test(name)) delete process.env[name];
    process.env.HOME = join(cache, "home");
    mkdirSync(process.env.HOME, { recursive: true });
  }
}

/** All that a task puts below TMPDIR goes with it, also what an earlier, killed run has left. @param {(env: Env) => Promise<number>} work */
async function inScratchFolder(work) {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = /^palisade-run-(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(tmpdir(), `palisade-run-${process.pid}-`));
  chmodSync(folder, 0o755); // Started by root, a server runs as another user and must reach its files here.
  return await work({ ...process.env, TMPDIR: folder }).finally(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
}

/** @param {string[]} words */
async function main([name = "", ...args]) {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (!((major === 20 && minor >= 19) || (major === 22 && minor >= 12) || major > 22))
    throw new Refusal(`Node 20.19, 22.12 or newer is needed; this is Node ${process.versions.node}`);
  const task = tasks[name];
  if (task === undefined) throw new Refusal(`there is no task "${name}"; there are ${Object.keys(tasks).join(", ")}`);
  settleHome();
  await inTurn(async () => {
    await install();
    if (task.builds === undefined) return;
    // tsc trusts its records, and does not see that an output was deleted.
    const lost = packageDirectories().some((folder) => existsSync(inRoot(folder, ".build")) && !existsSync(inRoot(folder, "dist")));
    const tsc = [process.execPath, inRoot("node_modules/typescript/bin/tsc"), "-b", inRoot(task.builds), ...(lost ? ["--force"] : [])];
    await succeed(tsc, { title: "compiling" });
  });
  return await inScratchFolder(async (env) => {
    let failed = 0;
    for (const command of task.commands(args))
      failed = (await run([process.execPath, ...command], { output: "shown", env })).code || failed;
    return failed;
  });
}

/**
 * The options and words of a tool's command line.
 * @template {Record<string, { type: "string" | "boolean" }>} Options @param {Options} options @param {string} usage
 * @returns {ReturnType<typeof parseArgs<{ options: Options, allowPositionals: true }>>}
 */
export function readArguments(options, usage, args = process.argv.slice(2)) {
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch (error) {
    throw new Refusal(`${/** @type {Error} */ (error).message.split(". ")[0]}. Usage: npm run ${usage}`);
  }
}

/** The body of a program: what it resolves to is the exit code, and a refusal is one sentence. @param {() => Promise<number>} body */
export async function perform(body) {
  const parent = process.ppid;
  for (const signal of /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP"])) process.on(signal, () => interrupt(signal));
  setInterval(() => process.ppid === parent || interrupt("SIGTERM", 129), 250).unref();
  await body().then(
    (code) => process.exit(ended || code),
    (error) => {
      if (ended === 0) console.error(error instanceof Refusal ? `palisade: ${error.message}` : error);
      process.exit(ended || 1);
    },
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) void perform(() => main(process.argv.slice(2)));
