// One timer for the looks of all waiters of a process: those that are due in the same tenth of a
// second wake in one turn and look at the same node, so their requests travel in one script call.
import type { Clock, Timer } from "../platform/clock.js";
import type { WaitBudget } from "./wait-budget.js";

const GRID_MS = 100;

interface Due {
  readonly sleepers: Set<WaitBudget>;
  readonly timer: Timer;
}

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
