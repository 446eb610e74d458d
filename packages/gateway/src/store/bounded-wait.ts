// How accepted work waits until it is started: bounded in number and in bytes, and each piece of it
// in time, by a timer, whatever else happens. It keeps no order; the queues do.
import type { Unavailable } from "../fence/verdict.js";

export interface WaitLimits {
  /** Accepted and not answered; beyond it the answer is unavailable/overloaded. */
  readonly maxAccepted: number;
  readonly maxAcceptedBytes: number;
  /** How long a piece of work may wait in all. */
  readonly maxWaitMs: number;
}

/** A piece of accepted work. The fields that change belong to BoundedWait. */
export interface Waiter {
  readonly bytes: number;
  /** In place of the queue's own answer when its wait is ended. */
  giveUp: ((why: Unavailable) => void) | undefined;
  waitedMs: number;
  waitsSince: number;
  overdueAt: number;
}

export function waiterOf(bytes: number): Waiter {
  return { bytes, giveUp: undefined, waitedMs: 0, waitsSince: 0, overdueAt: 0 };
}

export const overloaded: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
export const closing: Unavailable = { kind: "unavailable", reason: "closing", outcome: "not_applied" };

export class BoundedWait<W extends Waiter = Waiter> {
  readonly #limits: WaitLimits;
  readonly #onEnded: (waiter: W, why: Unavailable) => void;
  readonly #waiting = new Set<W>();
  #accepted = 0;
  #bytes = 0;
  #state: "open" | "closing" = "open";
  #onDrained: (() => void) | undefined;
  // One timer for all, set for the first that will be overdue: one for each cost more than all else
  // that the queue does.
  #timer: NodeJS.Timeout | undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  /** `onEnded`: it has waited too long, or the queue was abandoned. */
  constructor(limits: WaitLimits, onEnded: (waiter: W, why: Unavailable) => void = () => {}) {
    this.#limits = limits;
    this.#onEnded = onEnded;
  }

  /** Waiting and started. */
  get accepted(): number {
    return this.#accepted;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * Why it is not accepted; undefined when it was, and waits. One piece is always accepted, however
   * large.
   */
  accept(waiter: W): Unavailable | undefined {
    if (this.#state === "closing") return closing;
    const { maxAccepted, maxAcceptedBytes } = this.#limits;
    if (this.#accepted >= maxAccepted) return overloaded;
    if (this.#accepted > 0 && this.#bytes + waiter.bytes > maxAcceptedBytes) return overloaded;
    this.#accepted += 1;
    this.#bytes += waiter.bytes;
    this.wait(waiter);
    return undefined;
  }

  /** It waits, or waits again: for what is left of its time. */
  wait(waiter: W): void {
    waiter.waitsSince = performance.now();
    waiter.overdueAt = waiter.waitsSince + this.#limits.maxWaitMs - waiter.waitedMs;
    this.#waiting.add(waiter);
    if (waiter.overdueAt < this.#timerAt) this.#setTimer(waiter.overdueAt, waiter.waitsSince);
  }

  #setTimer(at: number, now: number): void {
    clearTimeout(this.#timer);
    this.#timerAt = at;
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, at - now)).unref();
  }

  /** Looks through all at once, so at most a hundred times in the time of one wait. */
  #expire(): void {
    const now = performance.now();
    const overdue: W[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiting) {
      if (waiter.overdueAt <= now) overdue.push(waiter);
      else next = Math.min(next, waiter.overdueAt);
    }
    this.#timerAt = Number.POSITIVE_INFINITY;
    if (next < this.#timerAt) this.#setTimer(Math.max(next, now + this.#limits.maxWaitMs / 100), now);
    for (const waiter of overdue) this.#end(waiter, overloaded);
  }

  /** Its wait is over. */
  start(waiter: W): void {
    if (!this.#waiting.delete(waiter)) return;
    waiter.waitedMs += performance.now() - waiter.waitsSince;
  }

  /** Whether it was not started yet. */
  isWaiting(waiter: W): boolean {
    return this.#waiting.has(waiter);
  }

  /** It was answered. */
  leave(waiter: W): void {
    this.start(waiter);
    this.#accepted -= 1;
    this.#bytes -= waiter.bytes;
    if (this.#accepted === 0) this.#onDrained?.();
  }

  /** Refuses new work; resolves when all accepted work was answered. */
  async drain(): Promise<void> {
    this.#state = "closing";
    if (this.#accepted === 0) return;
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
  }

  /** Ends every wait now; what was started goes on. */
  abandon(): void {
    for (const waiter of [...this.#waiting]) this.#end(waiter, closing);
  }

  #end(waiter: W, why: Unavailable): void {
    this.start(waiter);
    if (waiter.giveUp === undefined) this.#onEnded(waiter, why);
    else waiter.giveUp(why);
  }
}
