// The events of a world in the order of their moments; events of one moment in the order in which
// they were planned. After an event that ran client code, everything that this code left for the
// end of its turn (microtasks, ticks) is done before the next event.
import { createHash } from "node:crypto";

export interface PlannedEvent {
  readonly at: number;
  readonly order: number;
  /** undefined: cancelled. */
  run: (() => void) | undefined;
}

export class Timeline {
  /** True time, in milliseconds since the beginning of the world. */
  now = 0;
  /** How many events have happened. */
  happened = 0;
  readonly #heap: PlannedEvent[] = [];
  #orders = 0;
  #inTurn = false;

  /** Plans an event. Removing its `run` cancels it. */
  at(at: number, run: () => void): PlannedEvent {
    const planned = { at: Math.max(at, this.now), order: this.#orders++, run };
    const heap = this.#heap;
    let index = heap.length;
    heap.push(planned);
    while (index > 0) {
      const up = (index - 1) >> 1;
      const parent = heap[up] as PlannedEvent;
      if (parent.at < planned.at || (parent.at === planned.at && parent.order < planned.order)) break;
      heap[index] = parent;
      index = up;
    }
    heap[index] = planned;
    return planned;
  }

  after(ms: number, run: () => void): PlannedEvent {
    return this.at(this.now + ms, run);
  }

  /** Called by an event that runs client code. */
  beginTurn(): void {
    this.#inTurn = true;
  }

  /** Runs events until `isOver`, or until no event is left. */
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

  #next(): PlannedEvent | undefined {
    let first = this.#take();
    while (first !== undefined && first.run === undefined) first = this.#take();
    return first;
  }

  #take(): PlannedEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let below = 2 * index + 1;
      if (below >= heap.length) break;
      let child = heap[below] as PlannedEvent;
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

// The trace of a world: a line per event. Keeping it changes nothing in the world.
export class Trace {
  readonly lines: string[] = [];
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  log(actor: string, what: string): void {
    this.lines.push(`${this.#now().toFixed(3).padStart(11)}  ${actor.padEnd(7)} ${what.replace(/_{2,}/g, "")}`);
  }

  get hash(): string {
    return createHash("sha256").update(this.lines.join("\n")).digest("hex").slice(0, 16);
  }
}
