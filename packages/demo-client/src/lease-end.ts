// The moment at which a worker's lease is over by the clock, shown even if the worker itself does not notice. Decides nothing about the lease.
export class LeaseEnd {
  readonly #show: (text: string) => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(show: (text: string) => void) {
    this.#show = show;
  }

  /** In place of whatever was expected before. */
  isIn(ms: number, text: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.is(text), ms);
  }

  /** Now, unless it was before. */
  is(text: string): void {
    if (this.#timer === undefined) return;
    this.isNotTold();
    this.#show(text);
  }

  isNotTold(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
