// How many attempts of one locker may be on their way at the same time; the others wait, first in first out. Ten thousand questions at once would take a node longer
// than it may take to answer one: the last ones would count as unanswered, be asked again, and add to the load that made them late. Knows nothing of attempts.

export class Gate {
  readonly #width: number;
  readonly #line = new Set<() => void>();
  #inside = 0;

  constructor(width: number) {
    this.#width = width;
  }

  /** Whether the caller is inside at once; then it must `leave`. */
  tryEnter(): boolean {
    if (this.#inside === this.#width) return false;
    this.#inside++;
    return true;
  }

  /** Stands in line; `onTurn` is called when the caller is inside, and then it must `leave`. Returns how to step out of the line before that. */
  enqueue(onTurn: () => void): () => void {
    this.#line.add(onTurn);
    return () => this.#line.delete(onTurn);
  }

  leave(): void {
    for (const next of this.#line) {
      this.#line.delete(next);
      next();
      return;
    }
    this.#inside--;
  }
}
