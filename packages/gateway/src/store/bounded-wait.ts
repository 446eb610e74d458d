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

/** What is remembered of a piece of accepted work. */
interface Wait {
  readonly bytes: number;
  /** How long it may still wait, once it waits again. */
  leftMs: number;
  /** While it waits; otherwise never. */
  overdueAt: number;
}

export const overloaded: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
export const closing: Unavailable = { kind: "unavailable", reason: "closing", outcome: "not_applied" };

const NEVER = Number.POSITIVE_INFINITY;

export class BoundedWait<W extends object> {
  readonly #limits: WaitLimits;
  readonly #onEnded: (work: W, why: Unavailable) => void;
  /** Waiting and started. */
  readonly #accepted = new Map<W, Wait>();
  #waiting = 0;
  #bytes = 0;
  #state: "open" | "closing" = "open";
  #onDrained: (() => void) | undefined;
  // One timer for all, set for the first that will be overdue: one for each cost more than all else
  // that the queue does.
  #timer: NodeJS.Timeout | undefined;
  #timerAt = NEVER;

  /** `onEnded`: it has waited too long, or the queue was abandoned. */
  constructor(limits: WaitLimits, onEnded: (work: W, why: Unavailable) => void) {
    this.#limits = limits;
    this.#onEnded = onEnded;
  }

  /** Waiting and started. */
  get accepted(): number {
    return this.#accepted.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Why it is not accepted; undefined when it was, and waits. One piece is always accepted, however
   * large.
   */
  accept(work: W, bytes = 0, maxWaitMs = this.#limits.maxWaitMs): Unavailable | undefined {
    if (this.#state === "closing") return closing;
    const { maxAccepted, maxAcceptedBytes } = this.#limits;
    if (this.accepted >= maxAccepted) return overloaded;
    if (this.accepted > 0 && this.#bytes + bytes > maxAcceptedBytes) return overloaded;
    this.#bytes += bytes;
    const wait: Wait = { bytes, leftMs: maxWaitMs, overdueAt: NEVER };
    this.#accepted.set(work, wait);
    this.#begin(wait);
    return undefined;
  }

  /** It waits again: for what is left of its time. */
  wait(work: W): void {
    const wait = this.#accepted.get(work);
    if (wait !== undefined) this.#begin(wait);
  }

  #begin(wait: Wait): void {
    const now = performance.now();
    wait.overdueAt = now + wait.leftMs;
    this.#waiting += 1;
    if (wait.overdueAt < this.#timerAt) this.#setTimer(wait.overdueAt, now);
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
    let next = NEVER;
    for (const [work, { overdueAt }] of this.#accepted) {
      if (overdueAt <= now) overdue.push(work);
      else next = Math.min(next, overdueAt);
    }
    this.#timerAt = NEVER;
    if (next < NEVER) this.#setTimer(Math.max(next, now + this.#limits.maxWaitMs / 100), now);
    for (const work of overdue) this.#end(work, overloaded);
  }

  /** Its wait is over. */
  start(work: W): void {
    const wait = this.#accepted.get(work);
    if (wait === undefined || wait.overdueAt === NEVER) return;
    wait.leftMs = wait.overdueAt - performance.now();
    wait.overdueAt = NEVER;
    this.#waiting -= 1;
  }

  /** Whether it was not started yet. */
  isWaiting(work: W): boolean {
    return (this.#accepted.get(work)?.overdueAt ?? NEVER) < NEVER;
  }

  /** It was answered. */
  leave(work: W): void {
    this.start(work);
    this.#bytes -= this.#accepted.get(work)?.bytes ?? 0;
    this.#accepted.delete(work);
    if (this.accepted === 0) this.#onDrained?.();
  }

  /** Refuses new work; resolves when all accepted work was answered. */
  async drain(): Promise<void> {
    this.#state = "closing";
    if (this.accepted === 0) return;
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
  }

  /** Ends every wait now; what was started goes on. */
  abandon(): void {
    for (const [work, { overdueAt }] of [...this.#accepted]) if (overdueAt < NEVER) this.#end(work, closing);
  }

  #end(work: W, why: Unavailable): void {
    this.start(work);
    this.#onEnded(work, why);
  }
}
