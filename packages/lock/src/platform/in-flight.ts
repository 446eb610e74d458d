// How many operations of one locker are unfinished, so that close can wait for the last release to
// leave.

export class InFlight {
  #count = 0;
  #onIdle: (() => void)[] = [];

  begin(): void {
    this.#count++;
  }

  end(): void {
    this.#count--;
    if (this.#count > 0) return;
    const onIdle = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of onIdle) resolve();
  }

  /** Resolves when nothing is in flight. */
  idle(): Promise<void> {
    return this.#count === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }
}
