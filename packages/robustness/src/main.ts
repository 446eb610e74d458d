// `npm run faults`: real faults on real servers, and checkers for what comes of them. The whole
// system by default; `--ha` for three Postgres servers under Patroni; `--citus` for a Citus
// cluster; `--lock` for the lock alone; `--sim` for the simulation of the lock's package. Exit code
// 0 if every promise was kept, 1 if one was broken, 2 if the arguments make no sense, 3 if programs
// that it needs are missing.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runFaults } from "./runs/fault-run.js";
import { citusClusterFaults, haFaults, lockFaults, systemFaults } from "./runs/profiles.js";

const args = process.argv.slice(2);
/** What each answers is the exit code. */
const runs = new Map<string, (others: readonly string[]) => Promise<number>>([
  ["--ha", (others) => runFaults(haFaults, others)],
  ["--citus", (others) => runFaults(citusClusterFaults, others)],
  ["--lock", (others) => runFaults(lockFaults, others)],
  ["--sim", simulate],
]);
const asked = [...new Set(args.filter((arg) => runs.has(arg)))];
const others = args.filter((arg) => !runs.has(arg));

/** In this process, so that a signal to it ends the simulation. */
async function simulate(others: readonly string[]): Promise<number> {
  const program = new URL("../../lock/.build/test/simulation/main.js", import.meta.url);
  if (!existsSync(program)) {
    console.error("The simulation is not built: packages/lock/test/simulation/main.ts has no compiled form. `npm run build` makes it.");
    return 1;
  }
  process.argv = [process.execPath, fileURLToPath(program), ...others];
  await import(program.href);
  return Number(process.exitCode ?? 0);
}

if (asked.length > 1) {
  console.error(`${asked.join(" and ")} are different runs: ask for one of them.`);
  process.exitCode = 2;
} else process.exitCode = await (runs.get(asked[0] ?? "") ?? ((all) => runFaults(systemFaults, all)))(others);
