// A fixed number of write connections, the rows that delay them, and the line for work that needs a
// connection to itself. Their number bounds the statements in flight; it drops to one while Postgres
// does not answer.
import type { Unavailable } from "../fence/verdict.js";
import { BoundedWait, overloaded, type WaitLimits } from "./bounded-wait.js";
import { WriteConnection, type WriteConnectionOptions } from "./write-connection.js";

/** The slots. They keep no queue: the line and the group commit each have one. */
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

/** Forgetting one costs a batch one short wait. */
const MAX_REMEMBERED = 10_000;

/**
 * Resources whose row another session held for too long, or whose write failed its batch. What is
 * written to them goes by itself, one at a time of all of them, until something passes: so they take
 * one connection from the others, and delay no statement of theirs.
 */
export class HeldRows {
  /** When the row was last found held, on the clock of `performance`; 0 where it was not. */
  readonly #names = new Map<string, number>();

  has(resource: string): boolean {
    return this.#names.size > 0 && this.#names.has(resource);
  }

  mark(resource: string, why: "held" | "failed"): void {
    this.#names.set(resource, why === "held" ? performance.now() : 0);
    const [oldest] = this.#names.keys();
    if (this.#names.size > MAX_REMEMBERED && oldest !== undefined) this.#names.delete(oldest);
  }

  /** Whether it was found held since then: who has waited as long need not try it again. */
  wasHeldSince(resource: string, sinceMs: number): boolean {
    return this.#names.size > 0 && (this.#names.get(resource) ?? 0) > sinceMs;
  }

  passed(resource: string): void {
    if (this.#names.size > 0) this.#names.delete(resource);
  }
}

/** Nothing was done: another session holds a row. `rows` names those that are known. */
export interface Held {
  readonly kind: "held";
  readonly rows: readonly string[];
}

export const LOCK_TIMED_OUT = "55P03";

interface LineParts {
  readonly slots: Pick<WriteSlots, "tryTake" | "release">;
  readonly heldRows: HeldRows;
  readonly limits: WaitLimits;
}

/** Answers of work that had the locks of all its rows. */
const wrote: ReadonlySet<string> = new Set(["committed", "changed"]);

type Turn = (begin: WriteConnection | Unavailable) => void;

/**
 * Where work goes that needs a connection to itself: transactions, and what operators do. First
 * come, first served; of what concerns held rows one at a time, and in turns with the others.
 */
export class Line {
  readonly #parts: LineParts;
  readonly #wait: BoundedWait<Turn>;
  readonly #others = new Set<Turn>();
  readonly #apart = new Set<Turn>();
  #apartInFlight = false;
  #apartHadItsTurn = false;

  constructor(parts: LineParts) {
    this.#parts = parts;
    this.#wait = new BoundedWait(parts.limits, (turn, why) => {
      for (const turns of [this.#others, this.#apart]) turns.delete(turn);
      this.#wait.leave(turn);
      turn(why);
    });
  }

  get waiting(): number {
    return this.#wait.waiting;
  }

  async use<T extends { readonly kind: string }>(
    resources: readonly string[],
    work: (connection: WriteConnection) => Promise<T | Held>,
  ): Promise<T | Held | Unavailable> {
    const { slots, heldRows } = this.#parts;
    const cameAtMs = performance.now();
    const isApart = resources.some((resource) => heldRows.has(resource));
    let turn: Turn = () => {};
    const begun = new Promise<WriteConnection | Unavailable>((resolve) => {
      turn = resolve;
    });
    const refusal = this.#wait.accept(turn);
    if (refusal !== undefined) return refusal;
    (isApart ? this.#apart : this.#others).add(turn);
    this.#next();
    const connection = await begun;
    if ("kind" in connection) return isApart && connection === overloaded ? { kind: "held", rows: [] } : connection;
    try {
      // What was before it may have found a row held, and waited for it.
      if (resources.some((resource) => heldRows.wasHeldSince(resource, cameAtMs))) return { kind: "held", rows: [] };
      const answer = await work(connection);
      if (answer.kind === "held") for (const row of rowsOf(answer as Held, resources)) heldRows.mark(row, "held");
      else if (wrote.has(answer.kind)) for (const resource of resources) heldRows.passed(resource);
      return answer;
    } finally {
      if (isApart) this.#apartInFlight = false;
      slots.release(connection);
      this.#wait.leave(turn);
      this.#next();
    }
  }

  #next(): void {
    for (;;) {
      const [other] = this.#others;
      const [apart] = this.#apartInFlight ? [] : this.#apart;
      const turn = apart !== undefined && (other === undefined || !this.#apartHadItsTurn) ? apart : other;
      const connection = turn === undefined ? undefined : this.#parts.slots.tryTake();
      if (turn === undefined || connection === undefined) return;
      (turn === apart ? this.#apart : this.#others).delete(turn);
      if (turn === apart) this.#apartInFlight = true;
      this.#apartHadItsTurn = turn === apart;
      this.#wait.start(turn);
      turn(connection);
    }
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

/** Where it is not known which of them is held, any may be. */
function rowsOf({ rows }: Held, resources: readonly string[]): readonly string[] {
  return rows.length > 0 ? rows : resources;
}
