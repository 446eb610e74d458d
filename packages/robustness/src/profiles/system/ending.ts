// What a run has opened, to be closed in the reverse order, all of it, whatever fails. (AsyncDisposableStack does it in later Nodes.)

export class Ending implements AsyncDisposable {
  readonly #open: AsyncDisposable[] = [];

  use<Opened extends AsyncDisposable>(opened: Opened): Opened {
    this.#open.push(opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const opened of this.#open.reverse()) {
      try {
        await opened[Symbol.asyncDispose]();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, "not everything could be closed");
  }
}
