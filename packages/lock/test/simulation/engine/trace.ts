// The trace of a world: one line per event with time, actor and text. Keeping it changes nothing in
// the world.
import { createHash } from "node:crypto";

export class Trace {
  readonly lines: string[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  log(actor: string, what: string): void {
    this.lines.push(`${this.#now().toFixed(3).padStart(11)}  ${actor.padEnd(7)} ${what.replace(/_{2,}/g, "")}`);
  }

  get hash(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex").slice(0, 16);
  }
}
