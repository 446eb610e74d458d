// One timer for all leases of a locker: a binary heap of the moments at which each wants to be called. Ten thousand leases cost ten thousand small numbers, and
// taking and releasing a lease sets no timer. Knows nothing of leases.
import type { Clock, Timer } from "./clock.js";

/** Something that wants to be called at one moment. The fields belong to the heap. */
export interface Deadline {
  dueAt: number;
  /** Its place in the heap, or -1. */
  heapIndex: number;
  /** Its moment has come, or the machine was suspended. It may set itself again. Must not throw. */
  ring(): void;
  /** Whoever owns the heap is closed. Must not reject. */
  close(): Promise<void>;
}

/** Timers fire up to a millisecond early or late; an alarm that is due within this rings now rather than arming another timer. */
const GRAIN_MS = 1;
/** The timer never sleeps longer, so that a machine that was suspended notices soon after it was resumed. */
const LONGEST_SLEEP_MS = 1_000;
/** By how much the wall clock must run ahead of the monotonic clock between two looks to be taken for a suspension. */
const SUSPENSION_MS = 50;

export class DeadlineHeap {
  readonly #clock: Clock;
  readonly #heap: Deadline[] = [];
  #timer: Timer | undefined;
  #timerAt = Number.POSITIVE_INFINITY;
  #wallAheadMs: number;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wallAheadMs = clock.wallMs() - clock.monotonicMs();
  }

  get size(): number {
    return this.#heap.length;
  }

  /** Rings the alarm at this moment instead of the one it was set to, if it was. */
  set(deadline: Deadline, at: number): void {
    if (this.#closed) {
      void deadline.close();
      return;
    }
    deadline.dueAt = at;
    if (deadline.heapIndex < 0) {
      deadline.heapIndex = this.#heap.length;
      this.#heap.push(deadline);
    }
    this.#settle(deadline);
    this.#arm();
  }

  clear(deadline: Deadline): void {
    const index = deadline.heapIndex;
    if (index < 0) return;
    deadline.heapIndex = -1;
    const last = this.#heap.pop();
    if (last === undefined || last === deadline) return;
    this.#place(last, index);
    this.#settle(last);
    // The timer stays as it is: firing once for nothing is cheaper than setting it anew for every lease that is released.
  }

  /** Closes everything that is set, and whatever is set from now on: an alarm that rings may close us before others that were due have set themselves again. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#heap].map((deadline) => deadline.close()));
    this.#stop();
  }

  #stop(): void {
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #arm(): void {
    const first = this.#heap[0];
    if (first === undefined || first.dueAt >= this.#timerAt) return;
    const now = this.#clock.monotonicMs();
    // While nothing was set nobody looked at the clocks: a wall clock that was set back meanwhile must not cover the next suspension.
    if (this.#timer === undefined) this.#wallAheadMs = this.#clock.wallMs() - now;
    this.#stop();
    this.#timerAt = Math.min(first.dueAt, now + LONGEST_SLEEP_MS);
    this.#timer = this.#clock.setBackgroundTimer(Math.max(0, this.#timerAt - now), () => this.#fire());
  }

  #fire(): void {
    this.#timer = undefined;
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#clock.monotonicMs();
    const wallAheadMs = this.#clock.wallMs() - now;
    const suspended = wallAheadMs - this.#wallAheadMs > SUSPENSION_MS;
    this.#wallAheadMs = wallAheadMs;
    const due = suspended ? [...this.#heap] : this.#due(now + GRAIN_MS);
    for (const deadline of due) deadline.ring();
    this.#arm();
  }

  // Collected before the first one rings: an alarm that sets itself again for now must not keep the loop from ending.
  #due(until: number): Deadline[] {
    const due: Deadline[] = [];
    for (let first = this.#heap[0]; first !== undefined && first.dueAt <= until; first = this.#heap[0]) {
      this.clear(first);
      due.push(first);
    }
    return due;
  }

  #place(deadline: Deadline, index: number): void {
    this.#heap[index] = deadline;
    deadline.heapIndex = index;
  }

  // Moves the alarm up or down to where it belongs.
  #settle(deadline: Deadline): void {
    let index = deadline.heapIndex;
    for (let parent = this.#heap[(index - 1) >> 1]; index > 0 && parent !== undefined && parent.dueAt > deadline.dueAt; ) {
      const up = (index - 1) >> 1;
      this.#place(parent, index);
      index = up;
      parent = this.#heap[(index - 1) >> 1];
    }
    for (;;) {
      let childIndex = 2 * index + 1;
      let child = this.#heap[childIndex];
      const right = this.#heap[childIndex + 1];
      if (child !== undefined && right !== undefined && right.dueAt < child.dueAt) [child, childIndex] = [right, childIndex + 1];
      if (child === undefined || child.dueAt >= deadline.dueAt) break;
      this.#place(child, index);
      index = childIndex;
    }
    this.#place(deadline, index);
  }
}
