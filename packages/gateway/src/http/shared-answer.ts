// One result for all who ask while it is awaited, and at most one in each interval. It is never
// older than the question: who asks too soon after the last one waits for the next.

export class SharedAnswer<T> {
  readonly #make: () => T | Promise<T>;
  readonly #intervalMs: number;
  #madeAt = Number.NEGATIVE_INFINITY;
  #last: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(make: () => T | Promise<T>, intervalMs: number) {
    this.#make = make;
    this.#intervalMs = intervalMs;
  }

  get(): Promise<T> {
    this.#next ??= this.#whenDue();
    return this.#next;
  }

  async #whenDue(): Promise<T> {
    await this.#last?.catch(() => {}); // Whoever asked for it hears of its failure.
    const waitMs = this.#madeAt + this.#intervalMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#last = this.#next;
    this.#next = undefined;
    this.#madeAt = performance.now();
    return this.#make();
  }
}
