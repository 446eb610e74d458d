// `npm run fresh [-- --list] [-- --files a,b] [case…]`: runs the README's two commands on bare
// machines, and prints time, result and leftovers of each.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, stripVTControlCharacters } from "node:util";
import { run } from "../go/child.mjs";
import { step } from "../go/progress.mjs";
import { Refusal } from "../go/refusal.mjs";
import { cases, described } from "./cases.mjs";
import { mustBeAble } from "./host.mjs";
import { KEPT, makeMachine, newRunFolder } from "./root.mjs";

const STEP_LIMIT_MS = 30 * 60_000;
const SHOWN_COMPLAINTS = 60;
const namespaces = "--mount --ipc --pid --fork --kill-child --propagation private".split(" ");
const beside = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** @param {readonly string[]} args @returns {Promise<number>} the exit code */
export async function fresh(args) {
  const { list, files, names } = chosen(args);
  if (list) {
    for (const [name, machine] of Object.entries(cases))
      console.log(`${machine.usual ? "*" : " "} ${name.padEnd(14)} ${described(machine)}`);
    return 0;
  }
  await mustBeAble();
  let well = true;
  for (const name of names) well = (await prove(name, files)) && well;
  return well ? 0 : 1;
}

/** @param {readonly string[]} args */
function chosen(args) {
  const options = /** @type {const} */ ({ list: { type: "boolean" }, files: { type: "string" } });
  const { values, positionals } = parsed();
  const unknown = positionals.find((name) => cases[name] === undefined);
  if (unknown !== undefined) throw new Refusal(`there is no case "${unknown}"; there are ${Object.keys(cases).join(", ")}.`);
  const names = positionals.length > 0 ? positionals : Object.keys(cases).filter((name) => cases[name]?.usual);
  return { list: values.list === true, files: (values.files ?? "").split(",").filter((file) => file !== ""), names };

  function parsed() {
    try {
      return parseArgs({ args: [...args], options, allowPositionals: true });
    } catch (error) {
      const [reason] = /** @type {Error} */ (error).message.split(". ");
      throw new Refusal(`${reason}. Usage: npm run fresh -- [--list] [--files clock,orphans] [case…]`);
    }
  }
}

/**
 * Both commands, and both again without network where the case says so.
 * @param {string} name @param {readonly string[]} files what of the tests is run; all when empty
 * @returns {Promise<boolean>} whether everything went well
 */
async function prove(name, files) {
  const machine = /** @type {import("./cases.mjs").Machine} */ (cases[name]);
  console.log(`${name}: ${described(machine)}`);
  const folder = newRunFolder();
  const root = join(folder, "root");
  try {
    const env = { ...(await makeMachine(machine, root)), ...(machine.ci ? { CI: "true" } : {}) };
    const test = files.length > 0 ? `npm test -- ${files.join(" ")}` : "npm test";
    let well = true;
    for (const network of /** @type {("yes" | "no")[]} */ (machine.offlineToo ? ["yes", "no"] : ["yes"])) {
      for (const command of ["npm run demo", test]) well = (await perform({ machine, root, env, network }, command)) && well;
    }
    return well;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @typedef {{ machine: import("./cases.mjs").Machine, root: string, env: Record<string, string |
 * undefined>, network: "yes" | "no" }} Place
 */

/** @param {Place} place @param {string} command */
async function perform(place, command) {
  const title = `${command}${place.network === "yes" ? "" : " without network"}`;
  const startedAt = performance.now();
  const { code, output } = await step(title, () => run(entered(place, command), { output: "kept", limitMs: STEP_LIMIT_MS }));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  const lines = stripVTControlCharacters(output).split("\n");
  const left = lines.filter((line) => line.startsWith("LEFT ")).map((line) => line.slice("LEFT ".length));
  const tests = lines.filter((line) => /^\s+(Tests|Errors) /.test(line)).map((line) => line.trim().replaceAll(/\s+/g, " "));
  const well = code === 0 && left.length === 0;
  const findings = [`${seconds} s`, `exit ${code}`, ...tests, `left: ${left.join("; ") || "nothing"}`];
  console.log(`${well ? "  ok    " : "  FAILED"} ${title}: ${findings.join(", ")}`);
  if (!well) showComplaints(lines);
  return well;
}

/** @param {readonly string[]} lines */
function showComplaints(lines) {
  const log = join(KEPT, "last-failure.log");
  writeFileSync(log, lines.join("\n"));
  const complaints = lines.filter((line) => /^\s*FAIL |^palisade:|Error: /.test(line));
  for (const line of complaints.slice(0, SHOWN_COMPLAINTS)) console.log(`           ${line.trim()}`);
  console.log(`           the whole output: ${log}`);
}

/**
 * The command line that runs a step on the machine. @param {Place} place @param {string} command
 */
function entered({ machine, root, env, network }, command) {
  const script = readFileSync(beside("step.sh"), "utf8").replace("COMMAND", () => command);
  writeFileSync(join(root, "step.sh"), script);
  const first = machine.commandIsFirst ? ["bash", "-c", script] : ["bash", "/step.sh"];
  const apart = [...namespaces, ...(network === "yes" ? [] : ["--net"])];
  const enter = ["bash", beside("enter.sh"), root, machine.user, network, machine.closedTmp ? "noexec" : "exec"];
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  return ["unshare", ...apart, ...enter, "env", "--ignore-environment", ...variables, ...first];
}
