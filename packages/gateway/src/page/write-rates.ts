// Writes per second by what became of them, for the last five minutes.
import type { WriteCounts } from "./messages.js";

const SECONDS_KEPT = 300;

export class WriteRates {
  readonly #total: () => ReadonlyMap<string, number>;
  readonly #seconds: WriteCounts[] = [];
  #before: ReadonlyMap<string, number>;

  /** `total` counts from the start of the gateway. */
  constructor(total: () => ReadonlyMap<string, number>) {
    this.#total = total;
    this.#before = total();
  }

  /** The oldest first. */
  get seconds(): readonly WriteCounts[] {
    return this.#seconds;
  }

  get last(): WriteCounts {
    return this.#seconds.at(-1) ?? {};
  }

  /** Called once a second. */
  secondIsOver(): void {
    const now = this.#total();
    const counts: Record<string, number> = {};
    for (const [outcome, count] of now) {
      const more = count - (this.#before.get(outcome) ?? 0);
      if (more > 0) counts[outcome] = more;
    }
    this.#before = now;
    this.#seconds.push(counts);
    if (this.#seconds.length > SECONDS_KEPT) this.#seconds.shift();
  }
}
