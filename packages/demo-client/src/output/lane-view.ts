// The run live on a terminal: the time, one lane per worker and server, and beside them what
// happened. A thick lane holds a lease, a broken one stands still. No line is longer than the
// terminal is wide.
import { type ActBegins, type DemoEvent, type Output, type Step, serverLanes } from "./events.js";
import { checkPaint, checkText, PlainLines, TIME_WIDTH, timeText } from "./plain-lines.js";
import { type Paint, paint, wrapped } from "./text.js";

type LaneState = "idle" | "holding" | "stopped";

const serverPaints: Readonly<Record<string, Paint>> = { lock: paint.yellow, gateway: paint.green, store: paint.blue };
const workerPaints: readonly Paint[] = [paint.cyan, paint.magenta, paint.white, paint.cyan, paint.magenta];
const glyphs: Readonly<Record<LaneState, string>> = { idle: "│", holding: "┃", stopped: "╎" };
const marks: Partial<Record<Step["kind"], string>> = { stops: "■", resumes: "▶", over: "◇", holds: "◆", breaks: "✗" };

/** With less room for text beside the lanes, an act is shown in plain lines. */
const MIN_TEXT_WIDTH = 28;

interface Screen {
  readonly columns: number;
  print(line: string): void;
}

export class LaneView implements Output {
  readonly #screen: Screen;
  readonly #plainLines: PlainLines;
  #lanes: string[] = [];
  #states = new Map<string, LaneState>();
  #leases = new Set<string>();

  constructor(screen: Screen) {
    this.#screen = screen;
    this.#plainLines = new PlainLines(screen);
  }

  show(event: DemoEvent): void {
    if (event.event === "scenario") this.#screen.print(`\n${paint.bold(event.scenario)}  ${event.about}`);
    else if (event.event === "act") this.#begin(event);
    else if (event.event !== "end" && this.#textWidth < MIN_TEXT_WIDTH) this.#plainLines.show(event);
    else if (event.event === "step") this.#step(event);
    else if (event.event === "check") this.#row(event.atMs, this.#quiet(), { text: checkText(event), dye: checkPaint(event) });
    else if (event.ok) this.#screen.print(`\n${paint.green(paint.bold(`✓ ${event.proven}`))}`);
    else this.#screen.print(`\n${paint.red(`✗ ${event.proven}`)}`);
  }

  #begin({ act, actors }: ActBegins): void {
    this.#lanes = [...actors];
    this.#states = new Map();
    this.#leases = new Set();
    this.#screen.print(`\n${paint.bold(act)}`);
    if (this.#textWidth < MIN_TEXT_WIDTH) return;
    this.#screen.print("");
    // Where lanes are narrow, "worker 1" is two lines, so that its number can be read.
    const names = this.#lanes.map((lane) => wrapped(lane, this.#width - 1));
    const height = Math.max(...names.map((lines) => lines.length));
    for (let row = 0; row < height; row += 1) {
      const cells = names.map((lines, index) => {
        const line = (lines[row - height + lines.length] ?? "").slice(0, this.#width - 1);
        return this.#paintOf(this.#lanes[index] ?? "")(line.padEnd(this.#width));
      });
      this.#screen.print(" ".repeat(TIME_WIDTH) + cells.join(""));
    }
  }

  #step(step: Step): void {
    for (const lane of [step.from, step.to]) if (lane !== undefined && !this.#lanes.includes(lane)) this.#lanes.push(lane);
    this.#changeState(step);
    const lanes = step.to === undefined ? this.#spot(step) : this.#arrow(step, step.to);
    this.#row(step.atMs, lanes, { text: step.text, dye: this.#dye(step) });
  }

  #changeState({ kind, from }: Step): void {
    if (kind === "holds") this.#leases.add(from);
    if (kind === "over") this.#leases.delete(from);
    const state = kind === "stops" ? "stopped" : kind === "resumes" ? "idle" : this.#states.get(from);
    this.#states.set(from, state === "stopped" ? "stopped" : this.#leases.has(from) ? "holding" : "idle");
  }

  #dye({ kind, from }: Step): Paint {
    if (kind === "refuses") return (text) => paint.red(paint.bold(text));
    if (kind === "stops" || kind === "over" || kind === "breaks" || kind === "overwrites") return paint.yellow;
    return kind === "remarks" ? paint.dim : this.#paintOf(from);
  }

  #quiet(): string {
    return this.#lanes.map((lane) => this.#glyph(lane) + " ".repeat(this.#width - 1)).join("");
  }

  #spot({ kind, from }: Step): string {
    const at = (lane: string): string => (lane === from ? this.#paintOf(lane)(marks[kind] ?? "●") : this.#glyph(lane));
    return this.#lanes.map((lane) => at(lane) + " ".repeat(this.#width - 1)).join("");
  }

  /** From one lane to another, over those between. */
  #arrow({ kind, from }: Step, to: string): string {
    const [start, end] = [this.#lanes.indexOf(from), this.#lanes.indexOf(to)];
    const [left, right] = [Math.min(start, end), Math.max(start, end)];
    const dye = kind === "refuses" ? paint.red : this.#paintOf(from);
    const head = kind === "refuses" ? "✗" : end > start ? "▶" : "◀";
    const glyphAt = (lane: string, index: number): string => {
      if (index === start) return dye("●");
      if (index === end) return dye(head);
      return index > left && index < right ? dye("─") : this.#glyph(lane);
    };
    const gapAfter = (index: number): string =>
      index >= left && index < right ? dye("─".repeat(this.#width - 1)) : " ".repeat(this.#width - 1);
    return this.#lanes.map((lane, index) => glyphAt(lane, index) + gapAfter(index)).join("");
  }

  #row(atMs: number, lanes: string, { text, dye }: { readonly text: string; readonly dye: Paint }): void {
    const [first = "", ...rest] = wrapped(text, this.#textWidth);
    this.#screen.print(`${paint.dim(timeText(atMs))}  ${lanes}${dye(first)}`);
    for (const line of rest) this.#screen.print(`${" ".repeat(TIME_WIDTH)}${this.#quiet()}${dye(line)}`);
  }

  #glyph(lane: string): string {
    const state = this.#states.get(lane) ?? "idle";
    const glyph = glyphs[state];
    return state === "holding" ? this.#paintOf(lane)(glyph) : paint.dim(glyph);
  }

  #paintOf(lane: string): Paint {
    const workers = this.#lanes.filter((name) => !serverLanes.includes(name));
    return serverPaints[lane] ?? workerPaints[workers.indexOf(lane) % workerPaints.length] ?? paint.white;
  }

  get #width(): number {
    return this.#screen.columns >= 110 ? 10 : 8;
  }

  get #textWidth(): number {
    return this.#screen.columns - TIME_WIDTH - this.#width * this.#lanes.length;
  }
}
