// `npm run faults`: client processes read, modify and write through the gateways under the lock, while nodes, gateways, Postgres, networks and clients break, and what they
// were told is held against what is stored. Exit code 1 if a promise was broken (with --control: if none was), 2 if the arguments make no sense.
import { writeFileSync } from "node:fs";
import { progress, progressEnded } from "../../report/table.js";
import { type Asked, readArguments, usage } from "./arguments.js";
import { figuresOf } from "./figures.js";
import { page } from "./page/page.js";
import { type Progress, run } from "./run.js";
import { repeat, tell } from "./text-report.js";

/** Without a terminal there is a line from time to time. */
const LINE_EVERY_MS = 10_000;

export async function faultTheSystem(args: readonly string[]): Promise<number> {
  let asked: ReturnType<typeof readArguments>;
  try {
    asked = readArguments(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return 2;
  }
  if (asked !== "help") return perform(asked);
  console.log(usage);
  return 0;
}

async function perform(asked: Asked): Promise<number> {
  console.log(`seed ${asked.seed}; to repeat: ${repeat(asked)}`);
  const outcome = await run({ ...asked, onProgress: teller() });
  progressEnded();
  console.log(tell(outcome));
  if (asked.json !== undefined) writeFileSync(asked.json, JSON.stringify({ asked, figures: figuresOf(outcome), ...outcome }));
  if (asked.html !== undefined) writeFileSync(asked.html, page(asked, outcome));
  const isBroken = outcome.violations.length > 0;
  if (asked.mode === "unfenced") {
    const isLost = outcome.violations.some(({ lostUpdates = 0 }) => lostUpdates > 0);
    console.log(isLost ? "so it should be: this is the control" : "the control was expected to lose updates, and did not");
    return isLost ? 0 : 1;
  }
  if (isBroken) console.log(`to repeat: ${repeat(asked)}`);
  return isBroken ? 1 : 0;
}

function teller(): (state: Progress) => void {
  let linedAt = 0;
  return ({ elapsedMs, phase, done, refused, unknown, faults, lasting }) => {
    const what = phase === "undoing faults" ? `${phase} (${lasting.join(", ")})` : phase;
    const line = `${(elapsedMs / 1_000).toFixed(0)} s, ${what}: ${done} done, ${refused} refused, ${unknown} unknown, ${faults} faults`;
    progress(line);
    if (process.stderr.isTTY || elapsedMs - linedAt < LINE_EVERY_MS) return;
    linedAt = elapsedMs;
    console.log(line);
  };
}
