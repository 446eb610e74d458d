// The run as lines of plain text, one for each event: for pipes, logs and narrow terminals.
import type { Check, DemoEvent, Output, Step } from "./events.js";
import { type Paint, paint, wrapped } from "./text.js";

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
