// Who wants to know when a signal aborts. However many wait with the same signal, it has one listener: a process that gives all its calls the signal of its shutdown
// would otherwise be warned of a leak that is none. Decides nothing.
const watched = new WeakMap<AbortSignal, Watch>();

class Watch {
  readonly waiting = new Set<() => void>();
  readonly #signal: AbortSignal;
  readonly #tell = (): void => {
    for (const run of [...this.waiting]) run();
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#tell);
  }

  remove(run: () => void): void {
    if (!this.waiting.delete(run) || this.waiting.size > 0) return;
    this.#signal.removeEventListener("abort", this.#tell);
    watched.delete(this.#signal);
  }
}

/** Calls `run` when the signal aborts. Returns the undo, which must be called in any case. */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  let watch = watched.get(signal);
  if (watch === undefined) {
    watch = new Watch(signal);
    watched.set(signal, watch);
  }
  watch.waiting.add(run);
  return () => watch.remove(run);
}
