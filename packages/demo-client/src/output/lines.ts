// The run as lines of plain text, one for each event: for terminals, pipes and logs; and what text needs
// for that, colour and a width.
import picocolors from "picocolors";
import { type Show, type Step, sentencesOf } from "./events.js";

/** Piped output stays plain, also in CI, where picocolors would colour it. */
function isColoured(stream: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (NO_COLOR) return false;
  if (FORCE_COLOR) return FORCE_COLOR !== "0";
  return stream.isTTY === true && TERM !== "dumb";
}

type Paint = (text: string) => string;

/** For standard output. */
export const paint = picocolors.createColors(isColoured(process.stdout));
/** For standard error. */
export const errorPaint = picocolors.createColors(isColoured(process.stderr));

/** Lines of at most so many characters, broken at spaces; a longer word is cut. */
export function wrapped(text: string, longest: number): readonly string[] {
  const lines: string[] = [""];
  for (const word of text.split(" ").flatMap((whole) => piecesOf(whole, longest))) {
    const line = lines.at(-1) ?? "";
    if (line !== "" && line.length + 1 + word.length > longest) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines;
}

function piecesOf(word: string, longest: number): readonly string[] {
  if (word.length <= longest) return [word];
  const count = Math.ceil(word.length / longest);
  return Array.from({ length: count }, (_, index) => word.slice(index * longest, (index + 1) * longest));
}

const WHO_WIDTH = 20;
const TIME_WIDTH = 11;

/** A line longer than the columns goes on below. */
export function plainLines(print: (line: string) => void, columns = Number.POSITIVE_INFINITY): Show {
  const lines = (atMs: number, text: string, dye: Paint): void => {
    for (const [index, line] of wrapped(text, columns - TIME_WIDTH).entries())
      print(`${index === 0 ? `${timeText(atMs)}  ` : " ".repeat(TIME_WIDTH)}${dye(line)}`);
  };
  const step = ({ atMs, kind, from, to, text }: Step): void => {
    const who = to === undefined ? from : `${from} → ${to}`;
    const isWarning = kind === "stops" || kind === "over" || kind === "breaks" || kind === "overwrites";
    const dye: Paint = kind === "refuses" ? paint.red : isWarning ? paint.yellow : (plain) => plain;
    const beside = `${who.padEnd(WHO_WIDTH)}  ${text}`;
    if (TIME_WIDTH + beside.length <= columns) print(`${timeText(atMs)}  ${dye(beside)}`);
    else lines(atMs, `${who}: ${text}`, dye);
  };
  return (event) => {
    if (event.event === "scenario") {
      print(paint.bold(`\n${event.scenario}: ${event.about}`));
      for (const line of sentencesOf(event.claim).flatMap((sentence) => wrapped(sentence, columns - 2))) print(`  ${line}`);
    } else if (event.event === "act") print(`\n${paint.bold(event.act)}`);
    else if (event.event === "step") step(event);
    else if (event.event === "end") print(`\n${event.ok ? paint.green(`✓ ${event.proven}`) : paint.red(`✗ ${event.proven}`)}`);
    else if (!event.ok) lines(event.atMs, `✗ it is not true that ${event.claim}; seen: ${event.saw}`, paint.red);
    else if (event.damage) lines(event.atMs, `✗ damage: ${event.claim}`, paint.yellow);
    else lines(event.atMs, `✓ ${event.claim}`, paint.green);
  };
}

function timeText(atMs: number): string {
  return `${(atMs / 1_000).toFixed(3).padStart(7)} s`;
}
