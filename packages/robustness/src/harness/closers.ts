// What a run has opened, closed in the reverse order, all of it, even if closing one of them fails. (Newer versions of Node have
// AsyncDisposableStack.)

export class Closers implements AsyncDisposable {
  readonly #open: AsyncDisposable[] = [];

  use<Opened extends AsyncDisposable>(opened: Opened): Opened {
    this.#open.push(opened);
    return opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const failures: unknown[] = [];
    for (const opened of this.#open.splice(0).reverse()) {
      try {
        await opened[Symbol.asyncDispose]();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, "not everything could be closed");
  }
}
