// The story as lines of plain text, one for each thing that happened: for pipes, logs and narrow terminals. Decides only the wording around a step.

import { paint } from "./paint.js";
import type { Audience, Check, Step, StoryEvent } from "./story-event.js";

export class PlainLines implements Audience {
  readonly #print: (line: string) => void;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  notice(event: StoryEvent): void {
    if (event.event === "scenario") this.#print(paint.bold(`\n${event.scenario}: ${event.about}`));
    else if (event.event === "act") this.#print(`\n${paint.bold(event.act)}`);
    else if (event.event === "step") this.#print(`${timeText(event.atMs)}  ${stepText(event)}`);
    else if (event.event === "check") this.#print(`${timeText(event.atMs)}  ${checkText(event)}`);
    else this.#print(`\n${event.ok ? paint.green(`✓ ${event.proven}`) : paint.red(`✗ The story ended differently. ${event.proven}`)}`);
  }
}

export function timeText(atMs: number): string {
  return `${(atMs / 1_000).toFixed(3).padStart(7)} s`;
}

function stepText({ kind, from, to, text }: Step): string {
  const who = to === undefined ? from : `${from} → ${to}`;
  const line = `${who.padEnd(20)}  ${text}`;
  if (kind === "refuses") return paint.red(line);
  return kind === "stops" || kind === "over" || kind === "breaks" ? paint.yellow(line) : line;
}

export function checkText({ ok, claim, saw }: Check): string {
  return ok ? paint.green(`✓ ${claim}`) : paint.red(`✗ it is not true that ${claim}; seen: ${saw}`);
}
