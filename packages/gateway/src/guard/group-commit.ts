// Gathers the writes of one turn of the event loop into one statement, and keeps a few statements
// in flight. It decides when a batch starts and what happens to rows that must be sent again; the
// queue decides what goes into a batch, and the statement which rows are accepted.
import type { WriteRequest } from "../fence/verdict.js";
import type { WriteConnection } from "../store/write-connection.js";
import { afterLastTry, type BatchParts, type RowAnswer, sendBatch } from "./batch.js";
import { type Entry, type QueueLimits, type WriteOutcome, WriteQueue } from "./write-queue.js";

export interface GroupCommitLimits extends QueueLimits {
  /** A write that has waited longer is answered "overloaded" instead of being sent. */
  readonly maxWaitMs: number;
}

export type BatchEvent =
  | {
      readonly kind: "batch";
      readonly rows: number;
      readonly durationMs: number;
      readonly outcome: "ok" | "retried" | "unavailable" | "unknown";
    }
  | { readonly kind: "retried"; readonly code: string; readonly rows: number };

export interface GroupCommitParts extends BatchParts {
  readonly limits: GroupCommitLimits;
  readonly observe: (event: BatchEvent) => void;
}

/** How often a row that lost a race is sent. */
const MAX_ATTEMPTS = 5;
const overloaded: WriteOutcome = { kind: "unavailable", reason: "overloaded", outcome: "not_applied", retryAfterMs: 1_000 };
const closing: WriteOutcome = { kind: "unavailable", reason: "closing", outcome: "not_applied" };

export class GroupCommit {
  readonly #parts: GroupCommitParts;
  readonly #queue: WriteQueue;
  #state: "open" | "closing" = "open";
  #pumpIsDue = false;
  #onDrained: (() => void) | undefined;

  constructor(parts: GroupCommitParts) {
    this.#parts = parts;
    this.#queue = new WriteQueue(parts.limits);
  }

  get queued(): { readonly writes: number; readonly bytes: number } {
    return { writes: this.#queue.writes, bytes: this.#queue.bytes };
  }

  submit(request: WriteRequest, { verified, known }: Pick<Entry, "verified" | "known">): Promise<WriteOutcome> {
    if (this.#state === "closing") return Promise.resolve(closing);
    return new Promise((settle) => {
      const entry: Entry = { request, verified, known, acceptedAt: performance.now(), settle, attempts: 0 };
      if (this.#queue.add(entry) === "full") settle(overloaded);
      else this.#pumpAfterThisTurn();
    });
  }

  /** Refuses new writes; resolves when every accepted one has its verdict. */
  async drain(): Promise<void> {
    this.#state = "closing";
    if (this.#queue.writes === 0) return;
    await new Promise<void>((resolve) => {
      this.#onDrained = resolve;
    });
  }

  /** Answers now whatever was not sent yet. */
  abandonQueue(): void {
    for (let batch = this.#queue.take(); batch.length > 0; batch = this.#queue.take())
      for (const entry of batch) this.#finish(entry, closing);
  }

  /**
   * Not at once: the requests that arrived together with this one are still being parsed. This
   * costs an idle write the rest of the turn, which is microseconds.
   */
  #pumpAfterThisTurn(): void {
    if (this.#pumpIsDue) return;
    this.#pumpIsDue = true;
    setImmediate(() => {
      this.#pumpIsDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#queue.hasWork) {
      const connection = this.#parts.slots.tryTake();
      if (connection === undefined) return; // #run pumps again after releasing its slot.
      const batch = this.#queue.take().filter((entry) => this.#isInTime(entry));
      if (batch.length > 0) void this.#run(connection, batch);
      else this.#parts.slots.release(connection);
    }
  }

  #isInTime(entry: Entry): boolean {
    if (performance.now() - entry.acceptedAt <= this.#parts.limits.maxWaitMs) return true;
    this.#finish(entry, overloaded);
    return false;
  }

  async #run(connection: WriteConnection, batch: readonly Entry[]): Promise<void> {
    const startedAt = performance.now();
    const { answers, outcome } = await sendBatch(this.#parts, connection, batch);
    this.#parts.slots.release(connection);
    this.#parts.observe({ kind: "batch", rows: batch.length, durationMs: performance.now() - startedAt, outcome });
    for (const [index, entry] of batch.entries()) this.#take(entry, answers[index] ?? closing);
    this.#pump();
  }

  #take(entry: Entry, answer: RowAnswer): void {
    if (answer.kind !== "retry") {
      this.#finish(entry, answer);
      return;
    }
    entry.attempts += 1;
    this.#parts.observe({ kind: "retried", code: answer.code, rows: 1 });
    if (entry.attempts < MAX_ATTEMPTS) this.#queue.retryAlone(entry);
    else this.#finish(entry, afterLastTry(entry.request.resource, answer));
  }

  #finish(entry: Entry, verdict: WriteOutcome): void {
    const { resource } = entry.request;
    if (verdict.kind === "contention") this.#queue.markSlow(resource);
    else if (verdict.kind === "accepted") this.#queue.markPassed(resource);
    this.#queue.done(entry);
    entry.settle(verdict);
    if (this.#queue.writes === 0) this.#onDrained?.();
  }
}
