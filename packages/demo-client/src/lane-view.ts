// The story live on a terminal: time, one lane per actor, and beside them what happened. A thick lane holds a lease, a broken one stands still.
// Decides only how it looks, and where there is no room for lanes; must not need more columns than the terminal has.

import { paint } from "./paint.js";
import { checkPaint, checkText, type Paint, PlainLines, timeText } from "./plain-lines.js";
import type { ActBegins, Audience, Step, StoryEvent } from "./story-event.js";
import { wrapped } from "./wording.js";

type LaneState = "idle" | "holding" | "stopped";

const paints: Readonly<Record<string, Paint>> = { lock: paint.yellow, gateway: paint.green, store: paint.blue };
const workerPaints: readonly Paint[] = [paint.cyan, paint.magenta, paint.white, paint.cyan, paint.magenta];
const glyphs: Readonly<Record<LaneState, string>> = { idle: "│", holding: "┃", stopped: "╎" };
const marks: Partial<Record<Step["kind"], string>> = { stops: "■", resumes: "▶", over: "◇", holds: "◆", breaks: "✗" };

/** Left of the lanes: the time. */
const timeWidth = 11;
/** With less beside the lanes, an act is told in plain lines. */
const leastText = 28;

export interface Screen {
  readonly columns: number;
  print(line: string): void;
}

export class LaneView implements Audience {
  readonly #screen: Screen;
  readonly #plainLines: PlainLines;
  #lanes: string[] = [];
  #states = new Map<string, LaneState>();
  #leases = new Set<string>();

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#plainLines = new PlainLines(screen);
  }

  notice(event: StoryEvent): void {
    if (event.event === "scenario") this.#screen.print(`\n${paint.bold(event.scenario)}  ${event.about}`);
    else if (event.event === "act") this.#begin(event);
    else if (event.event !== "end" && this.#textWidth < leastText) this.#plainLines.notice(event);
    else if (event.event === "step") this.#step(event);
    else if (event.event === "check") this.#row(event.atMs, this.#quiet(), { text: checkText(event), dye: checkPaint(event) });
    else this.#screen.print(`\n${event.ok ? paint.green(paint.bold(`✓ ${event.proven}`)) : paint.red(`✗ ${event.proven}`)}`);
  }

  #begin({ act, actors }: ActBegins): void {
    this.#lanes = [...actors];
    this.#states = new Map();
    this.#leases = new Set();
    this.#screen.print(`\n${paint.bold(act)}`);
    if (this.#textWidth < leastText) return;
    this.#screen.print("");
    // "worker 1" is two lines where lanes are narrow: it is the number that tells it from the next.
    const names = this.#lanes.map((lane) => wrapped(lane, this.#width - 1));
    const height = Math.max(...names.map((lines) => lines.length));
    for (let row = 0; row < height; row += 1) {
      const cells = names.map((lines) => (lines[row - height + lines.length] ?? "").slice(0, this.#width - 1).padEnd(this.#width));
      this.#screen.print(`${" ".repeat(timeWidth)}${cells.map((cell, index) => this.#paintOf(this.#lanes[index] ?? "")(cell)).join("")}`);
    }
  }

  #step(step: Step): void {
    for (const lane of [step.from, step.to]) if (lane !== undefined && !this.#lanes.includes(lane)) this.#lanes.push(lane);
    this.#turn(step);
    const lanes = step.to === undefined ? this.#spot(step) : this.#arrow(step, step.to);
    this.#row(step.atMs, lanes, { text: step.text, dye: this.#dye(step) });
  }

  #turn({ kind, from }: Step): void {
    if (kind === "holds") this.#leases.add(from);
    if (kind === "over") this.#leases.delete(from);
    const state = kind === "stops" ? "stopped" : kind === "resumes" ? "idle" : this.#states.get(from);
    this.#states.set(from, state === "stopped" ? "stopped" : this.#leases.has(from) ? "holding" : "idle");
  }

  #dye({ kind, from }: Step): Paint {
    if (kind === "refuses") return (text) => paint.red(paint.bold(text));
    if (kind === "stops" || kind === "over" || kind === "breaks") return paint.yellow;
    return kind === "remarks" ? paint.dim : this.#paintOf(from);
  }

  #quiet(): string {
    return this.#lanes.map((lane) => this.#glyph(lane) + " ".repeat(this.#width - 1)).join("");
  }

  #spot({ kind, from }: Step): string {
    return this.#lanes
      .map((lane) => (lane === from ? this.#paintOf(lane)(marks[kind] ?? "●") : this.#glyph(lane)) + " ".repeat(this.#width - 1))
      .join("");
  }

  /** From one lane to another, over those between. */
  #arrow({ kind, from }: Step, to: string): string {
    const [start, end] = [this.#lanes.indexOf(from), this.#lanes.indexOf(to)];
    const [left, right] = [Math.min(start, end), Math.max(start, end)];
    const dye = kind === "refuses" ? paint.red : this.#paintOf(from);
    const head = kind === "refuses" ? "✗" : end > start ? "▶" : "◀";
    return this.#lanes
      .map((lane, index) => {
        const under = index >= left && index < right ? dye("─".repeat(this.#width - 1)) : " ".repeat(this.#width - 1);
        const at = index === start ? dye("●") : index === end ? dye(head) : index > left && index < right ? dye("─") : this.#glyph(lane);
        return at + under;
      })
      .join("");
  }

  #row(atMs: number, lanes: string, { text, dye }: { readonly text: string; readonly dye: Paint }): void {
    const [first = "", ...rest] = wrapped(text, this.#textWidth);
    this.#screen.print(`${paint.dim(timeText(atMs))}  ${lanes}${dye(first)}`);
    for (const line of rest) this.#screen.print(`${" ".repeat(timeWidth)}${this.#quiet()}${dye(line)}`);
  }

  #glyph(lane: string): string {
    const state = this.#states.get(lane) ?? "idle";
    const glyph = glyphs[state];
    return state === "holding" ? this.#paintOf(lane)(glyph) : paint.dim(glyph);
  }

  #paintOf(lane: string): Paint {
    const workers = this.#lanes.filter((name) => paints[name] === undefined);
    return paints[lane] ?? workerPaints[workers.indexOf(lane) % workerPaints.length] ?? paint.white;
  }

  get #width(): number {
    return this.#screen.columns >= 110 ? 10 : 8;
  }

  get #textWidth(): number {
    return this.#screen.columns - timeWidth - this.#width * this.#lanes.length;
  }
}
