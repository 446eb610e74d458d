// Builds the root of a bare machine: debootstrap's minimal Debian with git, a Node and its npm, and
// one user. Roots and Nodes are kept for the next run.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inRoot } from "../go/checkout.mjs";
import { birthOf } from "../go/process-table.mjs";
import { step } from "../go/progress.mjs";
import { inTurn } from "../go/turn.mjs";
import { debianMirror, giveAptSettings, networkSettings, succeed } from "./host.mjs";

/** Outside the clone: the files of a Debian are not ours to check. */
export const KEPT = "/var/cache/palisade-fresh";
/** The npm that the official images of each Node ship. */
const NPM_OF = { 20: "10", 22: "10", 24: "11" };

/**
 * A copy of the kept root, with the clone in it. Returns the environment of its commands.
 * @param {import("./cases.mjs").Machine} machine @param {string} root the folder to make
 */
export async function makeMachine({ release, node, user, clone: where, closedHome }, root) {
  const clone = where.replace(/^~/, () => homeOf(user));
  const [base, nodeFolder] = [await debian(release), await nodeWithNpm(node)];
  await step(`copying ${release}`, async () => {
    await succeed(["cp", "-a", "--reflink=auto", base, root]);
    cpSync(join(nodeFolder, `node-${process.platform}-${process.arch}`, "bin", "node"), join(root, "usr/local/bin/node"));
    await succeed(["cp", "-a", join(nodeFolder, "npm"), join(root, "usr/local/lib/npm")]);
    for (const name of ["npm", "npx"]) symlinkSync(`../lib/npm/bin/${name}-cli.js`, join(root, "usr/local/bin", name));
    await giveAptSettings(root);
    await succeed(["git", "clone", "--quiet", "--no-hardlinks", inRoot("."), join(root, clone)]);
  });
  const settings = await networkSettings(root, homeOf(user));
  const owner = closedHome ? "root:" : `${user}:`;
  await succeed(["chroot", root, "chown", "-R", owner, homeOf(user)]);
  await succeed(["chroot", root, "chmod", closedHome ? "a+rX" : "u+rwX", "-R", homeOf(user)]);
  await succeed(["chroot", root, "chown", "-R", `${user}:`, clone]);
  return { ...settings, HOME: homeOf(user), CLONE: clone, PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
}

const homeOf = (/** @type {string} */ user) => (user === "root" ? "/root" : `/home/${user}`);

/** @param {string} release */
function debian(release) {
  return keep(release, `making a bare Debian ${release} (once)`, async (folder) => {
    const mirror = await debianMirror();
    const command = ["debootstrap", "--variant=minbase", "--include=git", release, folder];
    await succeed(mirror === undefined ? command : [...command, mirror]);
    await succeed(["chroot", folder, "useradd", "--create-home", "--shell", "/bin/bash", "dev"]);
    await succeed(["chroot", folder, "apt-get", "clean"]);
  });
}

/** @param {20 | 22 | 24} major */
async function nodeWithNpm(major) {
  const packages = [`node-${process.platform}-${process.arch}@${major}`, `npm@${NPM_OF[major]}`];
  const folder = await keep(`node-${major}`, `fetching Node ${major}`, async (target) => {
    mkdirSync(target);
    writeFileSync(join(target, "package.json"), "{}");
    await succeed(["npm", "install", "--prefix", target, "--no-audit", "--no-fund", "--loglevel=error", ...packages]);
  });
  return join(folder, "node_modules");
}

/**
 * Built under another name, so that an interrupted build is not taken for a whole one, and by one
 * run at a time.
 * @param {string} name @param {string} title @param {(folder: string) => Promise<void>} build
 */
async function keep(name, title, build) {
  const [folder, part] = [join(KEPT, name), join(KEPT, `${name}.part`)];
  const make = async () => {
    if (existsSync(folder)) return;
    rmSync(part, { recursive: true, force: true });
    await step(title, () => build(part));
    renameSync(part, folder);
  };
  if (!existsSync(folder)) await inTurn(make, `${folder}.turn`);
  return folder;
}

/** A folder for one machine. Those of runs that were killed are removed. */
export function newRunFolder() {
  mkdirSync(KEPT, { recursive: true });
  for (const name of readdirSync(KEPT)) {
    const [, pid, birth] = /^run-(\d+)\.(\d+)-/.exec(name) ?? [];
    if (pid !== undefined && birthOf(Number(pid)) !== birth) rmSync(join(KEPT, name), { recursive: true, force: true });
  }
  return mkdtempSync(join(KEPT, `run-${process.pid}.${birthOf(process.pid)}-`));
}
