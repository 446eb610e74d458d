// What is of use together only: started together, and closed together.

interface Stoppable {
  stop(): Promise<unknown>;
}

/** All of them; when one cannot be had, the others are stopped, and one error tells every reason once. */
export async function allStarted<const Servers extends readonly Stoppable[]>(
  starts: {
    readonly [Index in keyof Servers]: Promise<Servers[Index]>;
  },
): Promise<Servers> {
  const outcomes = await Promise.allSettled(starts as readonly Promise<Stoppable>[]);
  const started = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  if (started.length === outcomes.length) return started as unknown as Servers;
  await Promise.all(started.map((server) => server.stop()));
  const failures = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
  const [first, ...others] = failures;
  if (others.length === 0) throw first;
  throw new AggregateError(failures, [...new Set(failures.map(({ message }) => message))].join("\n"));
}

/** What was opened is closed in the opposite order, also when some of it fails. */
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
