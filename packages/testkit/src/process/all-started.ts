// Servers that are of use together only.

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
