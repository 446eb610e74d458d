// A fixed number of write connections, the line for work that needs one to itself, and the rows for
// which some are set aside. Their number bounds the statements in flight; it drops to one while
// Postgres does not answer.
import type { Unavailable } from "../fence/verdict.js";
import type { BoundedWait, Waiter } from "./bounded-wait.js";
import { WriteConnection, type WriteConnectionOptions } from "./write-connection.js";

/** The slots. They keep no queue: SlotLine and the group commit each have one. */
export class WriteSlots {
  readonly #idle: WriteConnection[];
  readonly #all: readonly WriteConnection[];
  // A statement that timed out may hang in its server process for as long as the standby is away,
  // long after its connection was cut. Starting more of them at full width would use up Postgres's
  // connections within a minute; one at a time is enough to notice that Postgres answers again.
  #answering = true;

  constructor(count: number, options: Omit<WriteConnectionOptions, "onReply">) {
    const onReply: WriteConnectionOptions["onReply"] = (reply) => {
      this.#answering = !("failure" in reply && reply.failure.kind === "unknown" && reply.failure.reason === "timed_out");
    };
    this.#all = Array.from({ length: count }, () => new WriteConnection({ ...options, onReply }));
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

  /** Statements that still run end as connection_lost. */
  destroy(): void {
    for (const connection of this.#all) connection.destroy();
  }

  async end(timeoutMs: number): Promise<void> {
    await Promise.all(this.#all.map((connection) => connection.end(timeoutMs)));
  }
}

interface Place {
  readonly subject: string | undefined;
  readonly go: (connection: WriteConnection) => void;
}

/** First come, first served, but one at a time of each subject. Its work waits in a BoundedWait. */
export class SlotLine {
  readonly #slots: WriteSlots;
  readonly #places = new Set<Place>();
  readonly #subjects = new Set<string>();

  constructor(slots: WriteSlots) {
    this.#slots = slots;
  }

  /** Does the work of an accepted waiter on a slot, unless its wait ends before. */
  async use<W extends Waiter, T>(
    { wait, waiter, subject }: { readonly wait: BoundedWait<W>; readonly waiter: W; readonly subject?: string | undefined },
    work: (connection: WriteConnection) => Promise<T>,
  ): Promise<T | Unavailable> {
    const connection = this.#take(subject) ?? (await this.#turn(waiter, subject));
    waiter.giveUp = undefined;
    if ("kind" in connection) return connection;
    wait.start(waiter);
    try {
      return await work(connection);
    } finally {
      this.#release(connection, subject);
    }
  }

  #take(subject: string | undefined): WriteConnection | undefined {
    if (subject !== undefined && this.#subjects.has(subject)) return undefined;
    const connection = this.#slots.tryTake();
    if (connection !== undefined && subject !== undefined) this.#subjects.add(subject);
    return connection;
  }

  #turn(waiter: Waiter, subject: string | undefined): Promise<WriteConnection | Unavailable> {
    return new Promise((resolve) => {
      const place: Place = { subject, go: resolve };
      this.#places.add(place);
      waiter.giveUp = (why) => {
        this.#places.delete(place);
        resolve(why);
      };
    });
  }

  #release(connection: WriteConnection, subject: string | undefined): void {
    this.#slots.release(connection);
    if (subject !== undefined) this.#subjects.delete(subject);
    for (const place of this.#places) {
      if (place.subject !== undefined && this.#subjects.has(place.subject)) continue;
      const free = this.#take(place.subject);
      if (free === undefined) return;
      this.#places.delete(place);
      place.go(free);
    }
  }
}

/** Forgetting one costs a batch one short wait. */
const MAX_REMEMBERED = 10_000;

/**
 * Resources whose row another session held for too long, or whose write took too long or failed its
 * batch. Their writes go alone, on slots that are set aside for them, until one passes.
 */
export class SlowRows {
  readonly #names = new Set<string>();

  has(resource: string): boolean {
    return this.#names.size > 0 && this.#names.has(resource);
  }

  mark(resource: string): void {
    this.#names.add(resource);
    const [oldest] = this.#names;
    if (this.#names.size > MAX_REMEMBERED && oldest !== undefined) this.#names.delete(oldest);
  }

  passed(resource: string): void {
    if (this.#names.size > 0) this.#names.delete(resource);
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
