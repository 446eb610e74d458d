// The run as lines of plain text, one for each event: for terminals, pipes and logs; and what text needs
// for that, colour and a width.

import picocolors from "picocolors";
import type { Check, DemoEvent, Output, Step } from "./events.js";

/** Piped output stays plain, also in CI, where picocolors would colour it. */
function isColoured(stream: { readonly isTTY?: boolean }): boolean {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env;
  if (NO_COLOR) return false;
  if (FORCE_COLOR) return FORCE_COLOR !== "0";
  return stream.isTTY === true && TERM !== "dumb";
}

export type Paint = (text: string) => string;

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

interface Printer {
  /** A longer line goes on below; without columns lines are as long as they are. */
  readonly columns?: number | undefined;
  print(line: string): void;
}

export class PlainLines implements Output {
  readonly #printer: Printer;

  constructor(printer: Printer) {
    this.#printer = printer;
  }

  show(event: DemoEvent): void {
    const { print } = this.#printer;
    if (event.event === "scenario") print(paint.bold(`\n${event.scenario}: ${event.about}`));
    else if (event.event === "act") print(`\n${paint.bold(event.act)}`);
    else if (event.event === "step") this.#step(event);
    else if (event.event === "check") this.#lines(event.atMs, checkText(event), checkPaint(event));
    else print(`\n${event.ok ? paint.green(`✓ ${event.proven}`) : paint.red(`✗ ${event.proven}`)}`);
  }

  #step({ atMs, kind, from, to, text }: Step): void {
    const who = to === undefined ? from : `${from} → ${to}`;
    const isWarning = kind === "stops" || kind === "over" || kind === "breaks" || kind === "overwrites";
    const dye = kind === "refuses" ? paint.red : isWarning ? paint.yellow : plain;
    const beside = `${who.padEnd(WHO_WIDTH)}  ${text}`;
    if (TIME_WIDTH + beside.length <= this.#columns) this.#printer.print(`${timeText(atMs)}  ${dye(beside)}`);
    else this.#lines(atMs, `${who}: ${text}`, dye);
  }

  #lines(atMs: number, text: string, dye: Paint): void {
    for (const [index, line] of wrapped(text, this.#columns - TIME_WIDTH).entries())
      this.#printer.print(`${index === 0 ? `${timeText(atMs)}  ` : " ".repeat(TIME_WIDTH)}${dye(line)}`);
  }

  get #columns(): number {
    return this.#printer.columns ?? Number.POSITIVE_INFINITY;
  }
}

const plain: Paint = (text) => text;

function timeText(atMs: number): string {
  return `${(atMs / 1_000).toFixed(3).padStart(7)} s`;
}

function checkText({ ok, claim, saw, damage }: Check): string {
  if (!ok) return `✗ it is not true that ${claim}; seen: ${saw}`;
  return damage ? `✗ damage: ${claim}` : `✓ ${claim}`;
}

function checkPaint({ ok, damage }: Check): Paint {
  if (!ok) return paint.red;
  return damage ? paint.yellow : paint.green;
}
