// How accepted work waits until it is started: bounded in number and in bytes, and each piece of it
// in time, by a timer of its own. It keeps no order; the queues do.
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
  /** Called when it has waited too long, or when the queue is abandoned. */
  giveUp: (why: Unavailable) => void;
  waitedMs: number;
  waitsSince: number;
  timer: NodeJS.Timeout | undefined;
}

export function waiterOf(bytes: number): Waiter {
  return { bytes, giveUp: () => {}, waitedMs: 0, waitsSince: 0, timer: undefined };
}

export const overloaded: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
export const closing: Unavailable = { kind: "unavailable", reason: "closing", outcome: "not_applied" };

export class BoundedWait<W extends Waiter = Waiter> {
  readonly #limits: WaitLimits;
  readonly #waiting = new Set<W>();
  #accepted = 0;
  #bytes = 0;
  #state: "open" | "closing" = "open";
  #onDrained: (() => void) | undefined;
  readonly #expire = (waiter: W): void => {
    this.start(waiter);
    waiter.giveUp(overloaded);
  };

  constructor(limits: WaitLimits) {
    this.#limits = limits;
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
    waiter.timer = setTimeout(this.#expire, Math.max(0, this.#limits.maxWaitMs - waiter.waitedMs), waiter);
    this.#waiting.add(waiter);
  }

  /** Its wait is over. */
  start(waiter: W): void {
    if (!this.#waiting.delete(waiter)) return;
    clearTimeout(waiter.timer);
    waiter.waitedMs += performance.now() - waiter.waitsSince;
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
    for (const waiter of [...this.#waiting]) {
      this.start(waiter);
      waiter.giveUp(closing);
    }
  }
}
