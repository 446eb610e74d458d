// `npm run soak`: half an hour of everything, and whether anything grows that should not. Exit code 1 if a curve is not flat (with --leak: if all of client 1's are), 2
// if the arguments make no sense, 130 if it was interrupted.
import { writeFileSync } from "node:fs";
import { progress, progressEnded } from "../../report/table.js";
import { type Asked, readArguments, usage } from "./arguments.js";
import { type Finding, findAll, isFlat, standsOut } from "./findings.js";
import { draw } from "./picture/picture.js";
import { readRun } from "./replay.js";
import { type Outcome, soak } from "./run.js";
import { progressLine, tell } from "./words.js";

/** Without a terminal there is a line from time to time. */
const LINE_EVERY_MS = 60_000;

async function perform(asked: Asked): Promise<number> {
  if (asked.from !== undefined) {
    const run = readRun(asked.from);
    return conclude({ ...run.asked, svg: asked.svg }, run.outcome);
  }
  const interrupted = listenForTheEnd();
  console.log(`seed ${asked.seed}, ${asked.minutes} min at ${asked.perSecond} operations per second`);
  let lineAt = LINE_EVERY_MS;
  const outcome = await soak(asked, {
    interrupted,
    onFilled: (share) => progress(`filling the gateway's memory: ${Math.floor(100 * share)} %`),
    onProgress: (state) => {
      const line = progressLine(state, asked.minutes);
      progress(line);
      if (process.stderr.isTTY || state.elapsedMs < lineAt) return;
      lineAt += LINE_EVERY_MS;
      console.log(line);
    },
  });
  progressEnded();
  if (outcome.chronicle.rows.length === 0) {
    console.log(`${outcome.ending} before anything was measured`);
    return interrupted.aborted ? 130 : 1;
  }
  const code = conclude(asked, outcome);
  return interrupted.aborted ? 130 : code;
}

function conclude(asked: Asked, outcome: Outcome): number {
  const findings = findAll(outcome.chronicle);
  console.log(tell(outcome, findings));
  put(asked, outcome, findings);
  return exitCode(asked, findings);
}

function put(asked: Asked, outcome: Outcome, findings: readonly Finding[]): void {
  const { operations, failures, ending } = outcome;
  const verdicts = findings.flatMap(({ panel, curves }) =>
    curves.map(({ name, verdict: { judged: _, ...verdict } }) => ({ curve: `${panel.id}/${name}`, ...verdict })),
  );
  outcome.chronicle.end({ operations, failures, ending, verdicts });
  if (asked.svg === undefined) return;
  writeFileSync(asked.svg, draw(asked, outcome, findings));
  console.log(`picture: ${asked.svg}`);
}

function exitCode(asked: Asked, findings: readonly Finding[]): number {
  const bad = findings.filter((finding) => finding.curves.length > 0 && !isFlat(finding));
  if (asked.leaks.length === 0) {
    console.log(summary(bad));
    return bad.length === 0 ? 0 : 1;
  }
  const found = bad.filter(standsOut);
  console.log(
    found.length > 0
      ? `client 1 was found by: ${found.map(({ panel }) => panel.title).join("; ")}. So it should be: this is the control`
      : "client 1 leaks, and was not found: this is the control",
  );
  return found.length > 0 ? 0 : 1;
}

function summary(bad: readonly Finding[]): string {
  const tooShort = bad.flatMap(({ curves }) => curves.filter(({ verdict }) => verdict.kind === "too few values")).length;
  const growing = bad.filter(({ curves }) => curves.some(({ verdict }) => verdict.kind === "rising" || verdict.kind === "falling"));
  const sentences = [
    ...(growing.length === 0 ? [] : [`not flat: ${growing.map(({ panel }) => `${panel.group}: ${panel.title}`).join("; ")}`]),
    ...(tooShort === 0 ? [] : [`too few values to judge ${tooShort} curves`]),
  ];
  return sentences.length === 0 ? "flat" : sentences.join("; ");
}

/** The first signal ends the run in order, with what was seen so far; the second at once. */
function listenForTheEnd(): AbortSignal {
  const end = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (end.signal.aborted) process.exit(130);
      end.abort();
    });
  }
  return end.signal;
}

/** Not a verdict: the soak itself failed, and has ended everything it had started. */
function brokenOff(error: Error): number {
  progressEnded();
  console.error(`the soak broke off: ${error.stack ?? error.message}`);
  return 1;
}

function asked(): Asked | undefined {
  try {
    return readArguments(process.argv.slice(2), Date.now);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${usage}`);
    return undefined;
  }
}

const wanted = asked();
process.exitCode = wanted === undefined ? 2 : await perform(wanted).catch(brokenOff);
