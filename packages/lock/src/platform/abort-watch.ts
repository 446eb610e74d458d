// Callbacks for the abort of a signal. All callers that wait with the same signal share one
// listener: a process that gives all its calls the signal of its shutdown would otherwise be warned
// of a listener leak.
const watches = new WeakMap<AbortSignal, Watch>();

class Watch {
  readonly callbacks = new Set<() => void>();
  readonly #signal: AbortSignal;
  readonly #onAbort = (): void => {
    for (const run of [...this.callbacks]) run();
  };

  constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener("abort", this.#onAbort);
  }

  remove(run: () => void): void {
    if (!this.callbacks.delete(run) || this.callbacks.size > 0) return;
    this.#signal.removeEventListener("abort", this.#onAbort);
    watches.delete(this.#signal);
  }
}

/** Calls `run` when the signal aborts. Returns the undo, which must be called in any case. */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  let watch = watches.get(signal);
  if (watch === undefined) {
    watch = new Watch(signal);
    watches.set(signal, watch);
  }
  watch.callbacks.add(run);
  return () => watch.remove(run);
}
