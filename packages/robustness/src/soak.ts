// `npm run soak`: half an hour of everything, and whether anything grows that should not. Exit code
// 1 if a curve is not flat (with --leak: if none of client 1's stands out), 2 if the arguments make
// no sense, 130 if the run was interrupted.
import { writeFileSync } from "node:fs";
import { findAll, isBad, standsOut } from "./checkers/curves.js";
import { type Command, oneOf, positive, progress, progressLines, reportFiles, runCommand, seedOf, textOf, wholeNumber } from "./command.js";
import { picture, textReport, titleOf } from "./report/soak-report.js";
import { whole } from "./report/svg.js";
import { type SoakAsked, type Soaked, soak, writeLine } from "./runs/soak.js";
import { leaks } from "./traffic/messages.js";

const LINE_EVERY_MS = 60_000;

const soakCommand: Command<SoakAsked> = {
  usage: `npm run soak -- [options]
  --minutes M   how long (30)
  --rate R      operations per second of all clients together, as far as they can (100)
  --clients N   client processes (4)
  --seed S      what to draw the operations from (from the clock)
  --svg FILE    the picture
  --json FILE   one JSON object per line: what was asked, rows of values as they come, verdicts
  --leak KINDS  the control: client 1 leaks some of ${leaks.join(",")}, and must be found`,
  read: (values) => ({
    minutes: positive(values, "minutes", 30),
    perSecond: positive(values, "rate", 100),
    // One is stopped now and then, and one never.
    clients: wholeNumber(values, "clients", { fallback: 4, least: 2, most: 64 }),
    seed: seedOf(values),
    leaks: (textOf(values, "leak")?.split(",") ?? []).map((name) => oneOf("leak", name, leaks)),
    ...reportFiles(values),
  }),
  perform: (asked) => perform(asked).catch(brokenOff),
};

async function perform(asked: SoakAsked): Promise<number> {
  const interrupted = interruption();
  console.log(`seed ${asked.seed}, ${asked.minutes} min at ${asked.perSecond} operations per second`);
  const show = progressLines(LINE_EVERY_MS);
  const soaked = await soak(asked, {
    interrupted,
    onProgress: (elapsedMs, operations) =>
      show(elapsedMs, `${(elapsedMs / 60_000).toFixed(1)} of ${asked.minutes} min, ${whole(operations)} operations`),
  });
  progress("");
  const code = conclude(asked, soaked);
  return interrupted.aborted ? 130 : code;
}

function conclude(asked: SoakAsked, soaked: Soaked): number {
  const findings = findAll(soaked.rows);
  const { operations, failures } = soaked;
  const verdicts = findings.flatMap(({ panel, curves }) =>
    curves.map(({ name, verdict: { judged: _, ...verdict } }) => ({ curve: `${panel.id}/${name}`, ...verdict })),
  );
  writeLine(asked, { kind: "end", ...{ operations, failures, verdicts } });
  console.log(textReport(soaked, findings));
  if (asked.svg !== undefined) writeFileSync(asked.svg, picture(asked, soaked, findings));
  const bad = findings.filter(({ curves }) => curves.some(isBad));
  if (asked.leaks.length === 0) return bad.length === 0 && findings.length > 0 ? 0 : 1;
  const found = bad.filter(standsOut).map(titleOf);
  console.log(
    found.length > 0
      ? `client 1 was found by: ${found.join("; ")}. So it should be: this is the control`
      : "client 1 leaks, and was not found: this is the control",
  );
  return found.length > 0 ? 0 : 1;
}

/** The first signal ends the run in order, with what was seen so far; the second at once. */
function interruption(): AbortSignal {
  const interrupted = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (interrupted.signal.aborted) process.exit(130);
      interrupted.abort();
    });
  }
  return interrupted.signal;
}

/** Not a verdict: the soak itself failed, and has ended every process that it had started. */
function brokenOff(error: Error): number {
  progress("");
  console.error(`the soak broke off: ${error.stack ?? error.message}`);
  return 1;
}

process.exitCode = await runCommand(soakCommand, process.argv.slice(2));
