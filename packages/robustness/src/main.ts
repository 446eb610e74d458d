// `npm run faults`: real faults on real servers, and checkers for what comes of them. The whole
// system by default; `--ha` for three Postgres servers under Patroni; `--citus` for a Citus
// cluster; `--lock` for the lock alone; `--sim` for the simulation of the lock's package;
// `--change` for a picture of members that change, without faults. Exit code 0 if every promise was
// kept, 1 if one was broken, 2 if the arguments make no sense, 3 if programs that it needs are
// missing.
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { runCommand } from "./harness/command.js";
import { citusCommand } from "./profiles/citus.js";
import { haCommand } from "./profiles/ha.js";
import { lockCommand } from "./profiles/lock.js";
import { changeCommand } from "./profiles/member-change.js";
import { systemCommand } from "./profiles/system.js";

const args = process.argv.slice(2);
const system = (others: readonly string[]): Promise<number> => runCommand(systemCommand, others);
/** What each answers is the exit code. */
const runs = new Map<string, (others: readonly string[]) => Promise<number>>([
  ["--ha", (others) => runCommand(haCommand, others)],
  ["--citus", (others) => runCommand(citusCommand, others)],
  ["--lock", (others) => runCommand(lockCommand, others)],
  ["--change", (others) => runCommand(changeCommand, others)],
  ["--sim", simulate],
]);
const asked = args.filter((arg, index) => runs.has(arg) && args.indexOf(arg) === index);
const others = args.filter((arg) => !runs.has(arg));

/** In this process, so that a signal to it ends the simulation. */
async function simulate(others: readonly string[]): Promise<number> {
  const program = join(createRequire(import.meta.url).resolve("@palisade/lock/package.json"), "..", ".build/test/simulation/main.js");
  if (!existsSync(program)) {
    console.error("The simulation is not built: packages/lock/test/simulation/main.ts has no compiled form. `npm run build` makes it.");
    return 1;
  }
  process.argv = [process.execPath, program, ...others];
  await import(pathToFileURL(program).href);
  return Number(process.exitCode ?? 0);
}

if (asked.length > 1) {
  console.error(`${asked.join(" and ")} are different runs: ask for one of them.`);
  process.exitCode = 2;
} else process.exitCode = await (runs.get(asked[0] ?? "") ?? system)(others);
