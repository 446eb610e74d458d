// A fixed number of write connections, and the queue for work that needs one to itself. Their
// number bounds the statements in flight; it drops to one while Postgres does not answer.
import type { Unavailable } from "../fence/verdict.js";
import { type BoundStatement, type Reply, WriteConnection, type WriteConnectionOptions } from "./write-connection.js";

/** The slots. They keep no queue: SlotQueue and the group commit each have a bounded one. */
export class WriteSlots {
  readonly #idle: WriteConnection[];
  readonly #all: readonly WriteConnection[];
  // A statement that timed out may hang in its server process for as long as the standby is away,
  // long after its connection was cut. Starting more of them at full width would use up Postgres's
  // connections within a minute; one at a time is enough to notice that Postgres answers again.
  #answering = true;

  constructor(count: number, options: WriteConnectionOptions) {
    this.#all = Array.from({ length: count }, () => new WriteConnection(options));
    this.#idle = [...this.#all];
  }

  get inFlight(): number {
    return this.#all.length - this.#idle.length;
  }

  get open(): number {
    return this.#all.filter((connection) => connection.isOpen).length;
  }

  /**
   * Undefined when no further statement may start. The most recently used connection goes first, so
   * that few are open when little is written.
   */
  tryTake(): WriteConnection | undefined {
    if (!this.#answering && this.inFlight > 0) return undefined;
    return this.#idle.pop();
  }

  release(connection: WriteConnection): void {
    this.#idle.push(connection);
  }

  async run(connection: WriteConnection, statement: BoundStatement): Promise<Reply> {
    const reply = await connection.run(statement);
    this.#answering = !("failure" in reply && reply.failure.kind === "unknown" && reply.failure.reason === "timed_out");
    return reply;
  }

  /** Statements that still run end as connection_lost. */
  destroy(): void {
    for (const connection of this.#all) connection.destroy();
  }

  async end(timeoutMs: number): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.end(timeoutMs)));
  }
}

export interface SlotQueueLimits {
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
}

const overloaded: Unavailable = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
const closing: Unavailable = { kind: "unavailable", reason: "closing", outcome: "not_applied" };

/**
 * First come, first served, for work that needs a slot to itself. Bounded in length and in time.
 */
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

  /** Refuses new work; resolves when all accepted work is done. */
  async drain(): Promise<void> {
    this.#state = "closing";
    if (this.#inside === 0) return;
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
  }

  /** Refuses all work that has no slot yet. */
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

/** First in, first out, in constant time. The owner bounds its length. */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#head += 1;
    // Half of the array is used up: moving the rest costs each item one copy on average.
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
