// Who waits for a lane, first come, first served: for work that needs a write connection to itself. The line is bounded in length and in time.
// It must not know what the work is.

import type { Unavailable } from "../fence/verdict.js";
import { Fifo } from "./fifo.js";
import type { WriteConnection } from "./write-connection.js";
import type { WriteSlots } from "./write-slots.js";

export interface SlotQueueLimits {
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

const overloaded: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
const closing: Unavailable = { kind: "unavailable", reason: "closing", outcome: "not_applied" };

export class SlotQueue {
  readonly #slots: WriteSlots;
  readonly #limits: SlotQueueLimits;
  readonly #waiting = new Fifo<(connection: WriteConnection | undefined) => void>();
  #inside = 0;
  #state: "open" | "closing" = "open";
  #onDrained: (() => void) | undefined;

  constructor(slots: WriteSlots, limits: SlotQueueLimits) {
    this.#slots = slots;
    this.#limits = limits;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  async use<T>(work: (connection: WriteConnection) => Promise<T>): Promise<T | Unavailable> {
    if (this.#state === "closing") return closing;
    if (this.#waiting.length >= this.#limits.maxWaiting) return overloaded;
    const arrivedAt = performance.now();
    this.#inside += 1;
    let connection: WriteConnection | undefined;
    try {
      connection = this.#slots.tryTake() ?? (await this.#turn());
      if (connection === undefined) return closing;
      if (performance.now() - arrivedAt > this.#limits.maxWaitMs) return overloaded;
      return await work(connection);
    } finally {
      this.#inside -= 1;
      if (connection !== undefined) this.#release(connection);
      if (this.#inside === 0) this.#onDrained?.();
    }
  }

  /** Takes nobody new; resolves when everybody is through. */
  async drain(): Promise<void> {
    this.#state = "closing";
    if (this.#inside === 0) return;
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
  }

  /** Sends everybody away who has no lane yet. */
  abandon(): void {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) next(undefined);
  }

  #turn(): Promise<WriteConnection | undefined> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #release(connection: WriteConnection): void {
    this.#slots.release(connection);
    while (this.#waiting.length > 0) {
      const free = this.#slots.tryTake();
      if (free === undefined) return;
      this.#waiting.shift()?.(free);
    }
  }
}
