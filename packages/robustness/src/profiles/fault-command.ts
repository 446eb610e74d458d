// The command of a run under faults: what it prints and writes, and its exit code. A control is
// expected to be found wanting.
import { writeFileSync } from "node:fs";
import { type Command, progressEnded, progressLines, type ReportFiles } from "../harness/command.js";
import type { Violation } from "../history/records.js";
import { page } from "../report/drawing.js";
import type { Outcome } from "../report/outcome.js";
import { whole } from "../report/table.js";
import { figuresOf, textReport } from "../report/text.js";
import { timeline } from "../report/timeline.js";
import { type FaultProfile, type Progress, runUnderFaults } from "./fault-run.js";

interface Described<Asked> extends Omit<Command<Asked>, "perform"> {
  profile(asked: Asked): FaultProfile;
  /** The command that draws the same faults again. */
  repeat(asked: Asked): string;
  /** Whether the control was. */
  isFoundWanting(violations: readonly Violation[]): boolean;
  /** What a control is expected to do. */
  readonly expected: string;
}

const LINE_EVERY_MS = 10_000;

export function faultCommand<Asked extends ReportFiles & { readonly isControl: boolean; readonly seed: string }>(
  described: Described<Asked>,
): Command<Asked> {
  const { profile, repeat, isFoundWanting, expected } = described;
  const perform = async (asked: Asked): Promise<number> => {
    console.log(`seed ${asked.seed}; to repeat: ${repeat(asked)}`);
    const show = progressLines(LINE_EVERY_MS);
    const outcome = await runUnderFaults(profile(asked), (state) => show(state.elapsedMs, progressLine(state)));
    progressEnded();
    console.log(textReport(outcome));
    writeReports(asked, outcome, repeat(asked));
    const isBroken = outcome.violations.length > 0;
    if (asked.isControl) {
      const isFound = isFoundWanting(outcome.violations);
      console.log(isFound ? "so it should be: this is the control" : `the control was expected to ${expected}, and did not`);
      return isFound ? 0 : 1;
    }
    if (isBroken) console.log(`to repeat: ${repeat(asked)}`);
    return isBroken ? 1 : 0;
  };
  return { ...described, perform };
}

function writeReports(asked: ReportFiles & { readonly seed: string }, outcome: Outcome, repeat: string): void {
  const { json, svg, html } = asked;
  if (json !== undefined) writeFileSync(json, JSON.stringify({ asked, figures: figuresOf(outcome), ...outcome }));
  if (svg === undefined && html === undefined) return;
  const picture = timeline(outcome, { title: `Palisade fault run ${asked.seed}`, repeat });
  if (svg !== undefined) writeFileSync(svg, picture);
  if (html !== undefined) writeFileSync(html, page(`Palisade fault run ${asked.seed}`, picture));
}

function progressLine({ elapsedMs, phase, tally, faults, lasting }: Progress): string {
  const what = phase === "undoing faults" ? `${phase} (${lasting.join(", ")})` : phase;
  const { done, refused, unknown } = tally;
  const seconds = (elapsedMs / 1_000).toFixed(0);
  return `${seconds} s, ${what}: ${whole(done)} done, ${whole(refused)} refused, ${whole(unknown)} unknown, ${whole(faults)} faults`;
}
