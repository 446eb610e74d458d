// A clock that stands still until a test moves it. Timers fire in the order of their moments.
import type { Clock } from "../../src/platform/clock.js";

interface Pending {
  readonly at: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  now = 1_000;
  wallOffsetMs = 1_700_000_000_000;
  chance = 0.5;
  #pending: Pending[] = [];
  #secrets = 0;

  monotonicMs = (): number => this.now;
  wallMs = (): number => this.now + this.wallOffsetMs;
  random = (): number => this.chance;
  secret = (): string => `secret${++this.#secrets}`;

  setTimer = (delayMs: number, run: () => void): object => {
    const pending = { at: this.now + delayMs, run };
    this.#pending.push(pending);
    return pending;
  };

  setBackgroundTimer = this.setTimer;

  clearTimer = (timer: object | undefined): void => {
    this.#pending = this.#pending.filter((pending) => pending !== timer);
  };

  get timers(): number {
    return this.#pending.length;
  }

  /** Moves time on, and runs what is due on the way. */
  advance(byMs: number): void {
    const until = this.now + byMs;
    for (;;) {
      const next = this.#pending.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.clearTimer(next);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = until;
  }
}
