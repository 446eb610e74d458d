// What the bare machine takes from this one: package mirror, registry settings, certificates. Host
// names stay in the settings.
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "../go/child.mjs";
import { Refusal } from "../go/refusal.mjs";

const NPM_SETTINGS = ["registry", "proxy", "https-proxy", "noproxy", "cafile", "strict-ssl"];
const NETWORK_VARIABLE = /^((https?|no|all)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)$/i;
const APT_NETWORK_SETTING = /^Acquire::(http|https|Check-Valid-Until)\b/;

/** Runs a command to its end and returns what it wrote. @param {readonly string[]} command */
export async function succeed(command) {
  const { code, output } = await run(command, { output: "kept" });
  if (code !== 0) throw new Refusal(`${command.slice(0, 3).join(" ")}… failed with ${code}:\n${output.slice(-2000)}`);
  return output;
}

export async function mustBeAble() {
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    throw new Refusal("a bare machine is made with chroot and unshare, which need Linux and root; run it with sudo.");
  }
  const needed = ["debootstrap", "unshare", "chroot", "ip", "git", "npm"];
  const search = 'for program; do command -v "$program" >/dev/null || echo "$program"; done';
  const missing = (await succeed(["sh", "-c", search, "sh", ...needed])).split("\n").filter((name) => name !== "");
  if (missing.length === 0) return;
  const advice = "apt-get install debootstrap iproute2 git helps, or /usr/sbin on PATH";
  throw new Refusal(`${missing.join(", ")} cannot be found on PATH; ${advice}.`);
}

/** The mirror that this machine's apt takes Debian from; none: debootstrap takes its own. */
export async function debianMirror() {
  const command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"];
  // No apt on this machine.
  const { output } = await run(command, { output: "kept" }).catch(() => ({ output: "" }));
  return output.split("\n").find((line) => /^https?:/.test(line));
}

/**
 * Its package mirror is written by debootstrap; how to reach it is a setting of this machine.
 * @param {string} root
 */
export async function giveAptSettings(root) {
  const { output } = await run(["apt-config", "dump"], { output: "kept" }).catch(() => ({ output: "" }));
  const settings = output.split("\n").filter((line) => APT_NETWORK_SETTING.test(line));
  writeFileSync(join(root, "etc", "apt", "apt.conf.d", "90network"), `${settings.join("\n")}\n`);
}

/**
 * How to reach the registry: as variables, with the files that they name and the user's .npmrc
 * copied to the same places. @param {string} root @param {string} home
 */
export async function networkSettings(root, home) {
  const entries = Object.entries(process.env).filter(([name]) => NETWORK_VARIABLE.test(name));
  for (const name of NPM_SETTINGS) {
    const value = (await succeed(["npm", "--silent", "config", "get", name])).trim();
    if (value !== "" && value !== "null" && value !== "undefined") entries.push([`npm_config_${name.replaceAll("-", "_")}`, value]);
  }
  for (const [, value = ""] of entries) if (value.startsWith("/")) copyInto(root, value, value);
  copyInto(root, join(homedir(), ".npmrc"), join(home, ".npmrc"));
  for (const file of ["/etc/resolv.conf", "/etc/hosts"]) copyInto(root, file, file);
  return Object.fromEntries(entries);
}

/** @param {string} root @param {string} file @param {string} target */
function copyInto(root, file, target) {
  if (!existsSync(file)) return;
  mkdirSync(dirname(join(root, target)), { recursive: true });
  copyFileSync(file, join(root, target));
}
