// The end of the present turn of the event loop: after all microtasks of the turn, wherever in the turn we are, so that callers who wake together travel together.
// One for all nodes of a fleet. Decides nothing about what is sent.

export class TurnEnd {
  #atEnd: (() => void)[] = [];
  readonly #run = (): void => {
    const due = this.#atEnd;
    this.#atEnd = [];
    for (const run of due) run();
  };
  readonly #schedule = (): void => process.nextTick(this.#run);

  /** Must not throw. */
  add(run: () => void): void {
    // Not queueMicrotask, which makes a resource for hooks out of every call.
    if (this.#atEnd.length === 0) void Promise.resolve().then(this.#schedule);
    this.#atEnd.push(run);
  }
}
