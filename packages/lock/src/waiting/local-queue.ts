// First in, first out, inside one process: of all callers who want a resource, only the one in front asks the nodes. Knows nothing of nodes or leases.

interface Line<Word> {
  readonly queue: (() => void)[];
  /** What the one in front last learnt, for those behind who run out of patience without having asked. */
  word: Word | undefined;
}

export class LocalQueue<Word> {
  readonly #lines = new Map<string, Line<Word> | undefined>();

  /** Whether it is the caller's turn at once; then it must `leave`. */
  tryEnter(resource: string): boolean {
    if (this.#lines.has(resource)) return false;
    this.#lines.set(resource, undefined);
    return true;
  }

  /** Queues up; `onTurn` is called when it is the caller's turn, and then it must `leave`. Returns how to step out of the queue before that. */
  enqueue(resource: string, onTurn: () => void): () => void {
    const line = this.#line(resource);
    line.queue.push(onTurn);
    return () => {
      const index = line.queue.indexOf(onTurn);
      if (index >= 0) line.queue.splice(index, 1);
    };
  }

  /** The next one's turn. */
  leave(resource: string): void {
    const next = this.#lines.get(resource)?.queue.shift();
    if (next === undefined) this.#lines.delete(resource);
    else next();
  }

  /** Somebody of this process is in front, or waits behind. */
  occupied(resource: string): boolean {
    return this.#lines.has(resource);
  }

  tell(resource: string, word: Word): void {
    this.#line(resource).word = word;
  }

  lastWord(resource: string): Word | undefined {
    return this.#lines.get(resource)?.word;
  }

  /** How many wait behind the one in front. */
  length(resource: string): number {
    return this.#lines.get(resource)?.queue.length ?? 0;
  }

  #line(resource: string): Line<Word> {
    let line = this.#lines.get(resource);
    if (line === undefined) {
      line = { queue: [], word: undefined };
      this.#lines.set(resource, line);
    }
    return line;
  }
}
