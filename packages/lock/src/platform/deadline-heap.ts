// One timer for all leases of a locker: a binary heap of deadlines. Ten thousand leases cost ten
// thousand small numbers, and taking and releasing a lease sets no timer.
import type { Clock, Timer } from "./clock.js";

/** Something to be called at one moment. Only the heap writes the fields. */
export interface Deadline {
  dueAt: number;
  /** Its index in the heap, or -1. */
  heapIndex: number;
  /** It is due, or the machine was suspended. It may set itself again. Must not throw. */
  onDue(): void;
  /** The owner of the heap is closed. Must not reject. */
  close(): Promise<void>;
}

/**
 * Timers fire up to a millisecond early or late; a deadline that is due within this is called now
 * instead of arming another timer.
 */
const GRAIN_MS = 1;
/**
 * The timer never sleeps longer, so that a suspension is noticed soon after the machine was
 * resumed.
 */
const LONGEST_SLEEP_MS = 1_000;
/**
 * By how much the wall clock must run ahead of the monotonic clock between two readings to be taken
 * for a suspension.
 */
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

  /** Sets or moves the deadline to this moment. */
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
    // The timer stays as it is: firing once in vain is cheaper than setting it anew for every lease
    // that is released.
  }

  /**
   * Closes every deadline that is set, and every one set later: a callback may close the heap
   * before other due deadlines have set themselves again.
   */
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
    // No clock is read while the heap is empty: a wall clock that was set back in that time must
    // not hide the next suspension.
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
    for (const deadline of due) deadline.onDue();
    this.#arm();
  }

  // Collected before the first one is called: a deadline that sets itself again for now must not
  // keep the loop from ending.
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

  // Restores the order of the heap for one entry.
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
