// Where work goes that needs a connection to itself: first to the fast lane, whose connections wait
// only shortly for a row; what met a held row there is done again in the slow lane, whose few
// connections wait longer. So held rows take no more connections than the slow lane has.
import type { Unavailable } from "../fence/verdict.js";
import { BoundedWait, overloaded, type Waiter, type WaitLimits, waiterOf } from "./bounded-wait.js";
import type { WriteConnection } from "./write-connection.js";
import type { SlotLine, SlowRows } from "./write-slots.js";

/** Nothing was done: another session holds a row. `rows` names those that are known. */
export interface Held {
  readonly kind: "held";
  readonly rows: readonly string[];
}

export const LOCK_TIMED_OUT = "55P03";

interface LaneParts {
  readonly fast: SlotLine;
  readonly slow: SlotLine;
  readonly slowRows: SlowRows;
  readonly limits: WaitLimits;
}

export class Lanes {
  readonly #parts: LaneParts;
  readonly #wait: BoundedWait;

  constructor(parts: LaneParts) {
    this.#parts = parts;
    this.#wait = new BoundedWait(parts.limits);
  }

  get waiting(): number {
    return this.#wait.waiting;
  }

  /** `held` when a row was held for too long in the slow lane as well. */
  async use<T extends { readonly kind: string }>(
    resources: readonly string[],
    work: (connection: WriteConnection) => Promise<T | Held>,
  ): Promise<T | Held | Unavailable> {
    const waiter = waiterOf(0);
    const refusal = this.#wait.accept(waiter);
    if (refusal !== undefined) return refusal;
    try {
      return (await this.#fast(waiter, resources, work)) ?? (await this.#slow(waiter, resources, work));
    } finally {
      this.#wait.leave(waiter);
    }
  }

  /** Undefined when the work belongs into the slow lane. */
  async #fast<T extends { readonly kind: string }>(
    waiter: Waiter,
    resources: readonly string[],
    work: (connection: WriteConnection) => Promise<T | Held>,
  ): Promise<T | Unavailable | undefined> {
    const { fast, slowRows } = this.#parts;
    const isSlow = () => resources.some((resource) => slowRows.has(resource));
    if (isSlow()) return undefined;
    // Asked again when its turn comes: what was before it may have found the row held.
    const answer = await fast.use({ wait: this.#wait, waiter }, async (connection) => (isSlow() ? undefined : await work(connection)));
    if (answer?.kind === "held") for (const row of (answer as Held).rows) slowRows.mark(row);
    return answer?.kind === "held" ? undefined : (answer as T | Unavailable | undefined);
  }

  async #slow<T extends { readonly kind: string }>(
    waiter: Waiter,
    resources: readonly string[],
    work: (connection: WriteConnection) => Promise<T | Held>,
  ): Promise<T | Held | Unavailable> {
    const { slow, slowRows } = this.#parts;
    this.#wait.wait(waiter);
    const subject = resources.find((resource) => slowRows.has(resource));
    const answer = await slow.use({ wait: this.#wait, waiter, subject }, work);
    if (answer === overloaded) return { kind: "held", rows: [] }; // It waited behind others that wait for such rows.
    if (answer.kind !== "held" && answer.kind !== "unavailable") for (const resource of resources) slowRows.passed(resource);
    return answer;
  }

  /** Refuses new work; resolves when all accepted work is done. */
  drain(): Promise<void> {
    return this.#wait.drain();
  }

  /** Refuses all work that has no connection yet. */
  abandon(): void {
    this.#wait.abandon();
  }
}
