// What happens next. One list of events in the order of their moments; those of one moment in the order in which they were planned. After an event in which code of a
// client may have run, everything that this code left for the end of its turn (microtasks, ticks) is done before the next event. Knows nothing of what the events are.

export interface Happening {
  readonly at: number;
  readonly order: number;
  /** undefined once it is cancelled. */
  run: (() => void) | undefined;
}

export class Timeline {
  /** True time, in milliseconds since the beginning of the world. */
  now = 0;
  /** How many events have happened. */
  happened = 0;
  readonly #heap: Happening[] = [];
  #orders = 0;
  #inTurn = false;

  /** Plans an event. It may be cancelled by taking its `run` away. */
  at(at: number, run: () => void): Happening {
    const happening = { at: Math.max(at, this.now), order: this.#orders++, run };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(happening);
    while (index > 0) {
      const up = (index - 1) >> 1;
      const parent = heap[up] as Happening;
      if (parent.at < happening.at || (parent.at === happening.at && parent.order < happening.order)) break;
      heap[index] = parent;
      index = up;
    }
    heap[index] = happening;
    return happening;
  }

  after(ms: number, run: () => void): Happening {
    return this.at(this.now + ms, run);
  }

  /** Called by an event in which code of a client runs. */
  beginTurn(): void {
    this.#inTurn = true;
  }

  /** Lets things happen until it is over, or nothing is planned any more. */
  play(isOver: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const go = (): void => {
        try {
          while (!isOver()) {
            const next = this.#next();
            if (next === undefined) break;
            this.now = next.at;
            this.happened++;
            next.run?.();
            if (!this.#inTurn) continue;
            this.#inTurn = false;
            setImmediate(go);
            return;
          }
          resolve();
        } catch (error) {
          reject(error);
        }
      };
      setImmediate(go);
    });
  }

  #next(): Happening | undefined {
    let first = this.#take();
    while (first !== undefined && first.run === undefined) first = this.#take();
    return first;
  }

  #take(): Happening | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      let child = heap[below] as Happening;
      const other = heap[below + 1];
      if (other !== undefined && (other.at < child.at || (other.at === child.at && other.order < child.order))) {
        child = other;
        below++;
      }
      if (last.at < child.at || (last.at === child.at && last.order < child.order)) break;
      heap[index] = child;
      index = below;
    }
    heap[index] = last;
    return first;
  }
}
