// The command of the soak: what it prints and writes, and its exit code. A control is expected to
// find the leaking client.
import { writeFileSync } from "node:fs";
import { type Finding, findAll, isFlat, standsOut } from "../checkers/curves.js";
import { type Command, progress, progressEnded, progressLines } from "../harness/command.js";
import { readSoak, type Soaked } from "../history/samples.js";
import { curveTable, soakProgress } from "../report/curve-table.js";
import { drawCurves } from "../report/curves.js";
import { page } from "../report/drawing.js";
import { leaks } from "../traffic/messages.js";
import { readSoakArguments, type SoakAsked, soak } from "./soak.js";

const LINE_EVERY_MS = 60_000;

export const soakCommand: Command<SoakAsked> = {
  usage: `npm run soak -- [options]
  --minutes M   how long (30)
  --rate R      operations per second of all clients together, as far as they can (100)
  --clients N   client processes (4)
  --seed S      what to draw the operations from (from the clock)
  --svg FILE    the picture
  --html FILE   the picture in a page
  --json FILE   one JSON object per line: what was asked, rows of values as they come, verdicts
  --from FILE   judges and draws again what --json of an earlier run has written
  --leak KINDS  the control: client 1 leaks some of ${leaks.join(",")}, and must be found`,
  texts: ["minutes", "rate", "clients", "seed", "leak", "from"],
  flags: [],
  read: readSoakArguments,
  perform: async (asked) => (asked.from === undefined ? await perform(asked).catch(brokenOff) : again(asked, asked.from)),
};

/** An earlier run, judged and drawn again. */
function again({ svg, html }: SoakAsked, from: string): number {
  let run: ReturnType<typeof readSoak<SoakAsked>>;
  try {
    run = readSoak<SoakAsked>(from);
  } catch (error) {
    console.error(`--from ${from} cannot be read: ${(error as Error).message}`);
    return 2;
  }
  return conclude({ ...run.asked, svg, html }, run.soaked);
}

async function perform(asked: SoakAsked): Promise<number> {
  const interrupted = interruption();
  console.log(`seed ${asked.seed}, ${asked.minutes} min at ${asked.perSecond} operations per second`);
  const show = progressLines(LINE_EVERY_MS);
  const soaked = await soak(asked, {
    interrupted,
    onFilled: (share) => progress(`filling the gateway's memory: ${Math.floor(100 * share)} %`),
    onProgress: (elapsedMs, samples, operations) =>
      show(elapsedMs, soakProgress({ elapsedMs, minutes: asked.minutes, samples, operations })),
  });
  progressEnded();
  if (soaked.samples.rows.length === 0) {
    console.log(`${soaked.ending} before anything was measured`);
    return interrupted.aborted ? 130 : 1;
  }
  const code = conclude(asked, soaked);
  return interrupted.aborted ? 130 : code;
}

function conclude(asked: SoakAsked, soaked: Soaked): number {
  const findings = findAll(soaked.samples);
  const { operations, failures, ending, samples } = soaked;
  console.log(curveTable(soaked, findings));
  const verdicts = findings.flatMap(({ panel, curves }) =>
    curves.map(({ name, verdict: { judged: _, ...verdict } }) => ({ curve: `${panel.id}/${name}`, ...verdict })),
  );
  samples.end({ operations, failures, ending, verdicts });
  if (asked.svg !== undefined || asked.html !== undefined) {
    const picture = drawCurves(asked, soaked, findings);
    if (asked.svg !== undefined) writeFileSync(asked.svg, picture);
    if (asked.html !== undefined) writeFileSync(asked.html, page("Palisade soak", picture));
    console.log(`picture: ${[asked.svg, asked.html].filter(Boolean).join(", ")}`);
  }
  return exitCode(asked, findings);
}

function exitCode(asked: SoakAsked, findings: readonly Finding[]): number {
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
  progressEnded();
  console.error(`the soak broke off: ${error.stack ?? error.message}`);
  return 1;
}
