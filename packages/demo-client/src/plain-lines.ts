// The story as lines of plain text, one for each thing that happened: for pipes, logs and narrow terminals. Decides only the wording around a step.

import { paint } from "./paint.js";
import type { Audience, Check, Step, StoryEvent } from "./story-event.js";
import { wrapped } from "./wording.js";

export type Paint = (text: string) => string;

const whoWidth = 20;
const timeWidth = 11;

export interface Page {
  /** A line that would be longer goes on below; absent where nobody looks at columns. */
  readonly columns?: number | undefined;
  print(line: string): void;
}

export class PlainLines implements Audience {
  readonly #page: Page;

  constructor(page: Page) {
    this.#page = page;
  }

  notice(event: StoryEvent): void {
    const { print } = this.#page;
    if (event.event === "scenario") print(paint.bold(`\n${event.scenario}: ${event.about}`));
    else if (event.event === "act") print(`\n${paint.bold(event.act)}`);
    else if (event.event === "step") this.#step(event);
    else if (event.event === "check") this.#lines(event.atMs, checkText(event), checkPaint(event));
    else print(`\n${event.ok ? paint.green(`✓ ${event.proven}`) : paint.red(`✗ ${event.proven}`)}`);
  }

  #step({ atMs, kind, from, to, text }: Step): void {
    const who = to === undefined ? from : `${from} → ${to}`;
    const dye = kind === "refuses" ? paint.red : kind === "stops" || kind === "over" || kind === "breaks" ? paint.yellow : plain;
    const beside = `${who.padEnd(whoWidth)}  ${text}`;
    if (timeWidth + beside.length <= this.#columns) this.#page.print(`${timeText(atMs)}  ${dye(beside)}`);
    else this.#lines(atMs, `${who}: ${text}`, dye);
  }

  #lines(atMs: number, text: string, dye: Paint): void {
    for (const [index, line] of wrapped(text, this.#columns - timeWidth).entries())
      this.#page.print(`${index === 0 ? `${timeText(atMs)}  ` : " ".repeat(timeWidth)}${dye(line)}`);
  }

  get #columns(): number {
    return this.#page.columns ?? Number.POSITIVE_INFINITY;
  }
}

const plain: Paint = (text) => text;

export function timeText(atMs: number): string {
  return `${(atMs / 1_000).toFixed(3).padStart(7)} s`;
}

export function checkText({ ok, claim, saw }: Check): string {
  return ok ? `✓ ${claim}` : `✗ it is not true that ${claim}; seen: ${saw}`;
}

export function checkPaint({ ok }: Check): Paint {
  return ok ? paint.green : paint.red;
}
