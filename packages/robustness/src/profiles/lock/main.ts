// `npm run faults -- --lock`: many processes take one resource in turn while the fleet is killed, wiped, stopped and cut off, and what they saw is judged. Exit code 1 if a
// promise was broken (with --control: if none was), 2 if the arguments make no sense.
import { writeFileSync } from "node:fs";
import { progress, progressEnded } from "../../report/table.js";
import { type Asked, readArguments, usage } from "./arguments.js";
import { run } from "./run.js";
import { repeat, tell } from "./verdict.js";

/** Without a terminal there is a line from time to time. */
const LINE_EVERY_MS = 10_000;

async function perform(asked: Asked): Promise<number> {
  console.log(`seed ${asked.seed}; to repeat: ${repeat(asked)}`);
  let linedAt = 0;
  const outcome = await run({
    ...asked,
    onProgress: ({ leases, faults, elapsedMs }) => {
      const line = `${(elapsedMs / 1_000).toFixed(0)} s: ${leases} of ${asked.processes * asked.leases} leases, ${faults} faults`;
      progress(line);
      if (process.stderr.isTTY || elapsedMs - linedAt < LINE_EVERY_MS) return;
      linedAt = elapsedMs;
      console.log(line);
    },
  });
  progressEnded();
  console.log(tell(asked, outcome));
  if (asked.json !== undefined) writeFileSync(asked.json, JSON.stringify({ asked, ...outcome }));
  const isBroken = outcome.violations.length > 0;
  if (asked.kind === "naive") {
    console.log(isBroken ? "so it should be: this is the control" : "the control was expected to break a promise, and did not");
    return isBroken ? 0 : 1;
  }
  if (isBroken) console.log(`to repeat: ${repeat(asked)}`);
  return isBroken ? 1 : 0;
}

/** The exit code. */
export async function faultTheLock(args: readonly string[]): Promise<number> {
  let asked: Asked;
  try {
    asked = readArguments(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  return perform(asked);
}
