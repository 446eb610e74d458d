// How many attempts of one locker may be on their way at the same time; the others wait, first in first out. Ten thousand questions at once would take a node longer
// than it may take to answer one: the last ones would count as unanswered, be asked again, and add to the load that made them late. Knows nothing of attempts.

export class Gate {
  readonly #width: number;
  readonly #line: (() => void)[] = [];
  #inside = 0;

  constructor(width: number) {
    this.#width = width;
  }

  /** undefined: go ahead. Otherwise go ahead when it resolves. Then `leave`. */
  enter(): Promise<void> | undefined {
    if (this.#inside < this.#width) {
      this.#inside++;
      return undefined;
    }
    return new Promise((resolve) => this.#line.push(resolve));
  }

  leave(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#inside--;
    else next();
  }
}
