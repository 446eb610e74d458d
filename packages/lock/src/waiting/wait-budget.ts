// How long one caller waits, and what ends it early: its signal, the closing of the locker, a
// wake-up, or the one timer for the looks of all waiters of a process.
import { closedError, nameAll } from "../lease/messages.js";
import type { LockerState } from "../lease/state.js";
import { type Clock, onAbort, type Timer } from "../platform/clock.js";
import { LockError } from "../protocol/ballot.js";

type Closable = Pick<LockerState, "clock" | "isClosed" | "sleeping">;

const LONGEST_TIMER_MS = 2_147_483_647;

export class WaitBudget {
  readonly #locker: Closable;
  readonly #clock: Clock;
  readonly #signal: AbortSignal | undefined;
  readonly #beganAt: number;
  readonly #endsAt: number;
  /** It has one of the places of those that ask the nodes. */
  isAsking = false;
  #resume: (() => void) | undefined;
  #timer: Timer | undefined;
  #timerAt = 0;

  constructor(locker: Closable, limits: { readonly waitMs: number; readonly signal?: AbortSignal | undefined }) {
    this.#locker = locker;
    this.#clock = locker.clock;
    this.#signal = limits.signal;
    this.#beganAt = this.#clock.monotonicMs();
    this.#endsAt = this.#beganAt + limits.waitMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#endsAt - this.#clock.monotonicMs());
  }

  /** No time is left, or the caller gave up, or the locker was closed. */
  get isOver(): boolean {
    return this.#locker.isClosed || this.#signal?.aborted === true || this.leftMs === 0;
  }

  /** Throws LOCK_ABORTED if the caller gave up or the locker was closed. */
  check(resources: readonly string[]): void {
    if (this.#locker.isClosed) throw closedError(resources);
    if (this.#signal?.aborted) {
      const waitedMs = this.#clock.monotonicMs() - this.#beganAt;
      const message = `the caller gave up after waiting ${waitedMs.toFixed(0)} ms for ${nameAll(resources)}`;
      throw new LockError("LOCK_ABORTED", message, { resources, cause: this.#signal.reason });
    }
  }

  /** Sleeps so long, or less: until woken, aborted, closed, or at the end of the budget. */
  sleep(forMs: number): Promise<void> {
    if (this.#locker.isClosed || this.#signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const unwatch = this.#signal === undefined ? undefined : onAbort(this.#signal, () => this.wake());
      this.#resume = () => {
        unwatch?.();
        this.#locker.sleeping.delete(this);
        resolve();
      };
      this.#locker.sleeping.add(this);
      this.#wakeAt(this.#clock.monotonicMs() + Math.min(forMs, this.leftMs));
    });
  }

  get isAsleep(): boolean {
    return this.#resume !== undefined;
  }

  /** Ends the sleep now. No-op unless sleeping. */
  wake(): void {
    const resume = this.#resume;
    if (resume === undefined) return;
    this.#resume = undefined;
    this.#clock.clearTimer(this.#timer);
    this.#timer = undefined;
    resume();
  }

  /** Ends the sleep in so long, unless it ends earlier anyway. */
  wakeWithin(inMs: number): void {
    if (this.#resume === undefined) return;
    const at = this.#clock.monotonicMs() + inMs;
    if (at < this.#timerAt) this.#wakeAt(at);
  }

  #wakeAt(at: number): void {
    this.#clock.clearTimer(this.#timer);
    this.#timerAt = at;
    const inMs = at - this.#clock.monotonicMs();
    // Timers do not fire earlier than in a millisecond; less than half of that is rounded to none.
    if (inMs < 0.5) this.wake();
    else if (inMs <= LONGEST_TIMER_MS) this.#timer = this.#clock.setTimer(inMs, () => this.wake());
    else this.#timer = this.#clock.setTimer(LONGEST_TIMER_MS, () => this.#wakeAt(at));
  }
}

const GRID_MS = 100;

interface Due {
  readonly sleepers: Set<WaitBudget>;
  readonly timer: Timer;
}

/**
 * Waiters whose looks are due in the same tenth of a second wake in one turn and look at the same
 * node, so their requests travel in one script call.
 */
export class LookTimer {
  readonly #clock: Clock;
  readonly #due = new Map<number, Due>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Sleeps so long, or until the first moment of the grid after `atMs`. Returns the number of that
   * moment, which is the same for all that it wakes; undefined if the sleep ended otherwise.
   */
  async sleep(budget: WaitBudget, atMs: number, forMs: number): Promise<number | undefined> {
    const moment = Math.ceil(atMs / GRID_MS);
    const { sleepers } = this.#at(moment);
    sleepers.add(budget);
    await budget.sleep(forMs);
    return this.#leave(moment, budget) ? undefined : moment;
  }

  #at(moment: number): Due {
    const there = this.#due.get(moment);
    if (there !== undefined) return there;
    const inMs = Math.max(0, moment * GRID_MS - this.#clock.monotonicMs());
    const timer = this.#clock.setBackgroundTimer(inMs, () => {
      this.#due.delete(moment);
      for (const budget of due.sleepers) budget.wake();
    });
    const due = { sleepers: new Set<WaitBudget>(), timer };
    this.#due.set(moment, due);
    return due;
  }

  /** Whether the moment has not come yet. */
  #leave(moment: number, budget: WaitBudget): boolean {
    const due = this.#due.get(moment);
    if (due === undefined || !due.sleepers.delete(budget)) return false;
    if (due.sleepers.size === 0) {
      this.#clock.clearTimer(due.timer);
      this.#due.delete(moment);
    }
    return true;
  }
}
