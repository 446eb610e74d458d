// Gathers the writes of one turn of the event loop into one statement, and keeps a few statements
// in flight. It decides when a batch starts and what happens to rows that must be sent again; the
// queue decides what goes into a batch, and the statement which rows are accepted.
import type { Unavailable, WriteRequest } from "../fence/verdict.js";
import { BoundedWait, overloaded } from "../store/bounded-wait.js";
import { LOCK_TIMED_OUT } from "../store/lanes.js";
import { tracing } from "../store/spans.js";
import type { WriteConnection } from "../store/write-connection.js";
import type { SlotLine, WriteSlots } from "../store/write-slots.js";
import { afterLastTry, type BatchParts, type RowAnswer, sendBatch } from "./batch.js";
import { type BatchLimits, bytesOf, type Entry, none, type WriteOutcome, WriteQueue, writesOf } from "./write-queue.js";

interface GroupCommitLimits extends BatchLimits {
  readonly maxQueuedWrites: number;
  readonly maxQueuedBytes: number;
  readonly maxWaitMs: number;
}

export type BatchEvent =
  | {
      readonly kind: "batch";
      /** Its writes: those of a fold are one row for Postgres and counted one by one. */
      readonly rows: number;
      readonly durationMs: number;
      readonly outcome: "ok" | "retried" | "unavailable" | "unknown";
    }
  | { readonly kind: "retried"; readonly code: string; readonly rows: number };

interface GroupCommitParts extends BatchParts {
  readonly slots: WriteSlots;
  /** The slow lane. */
  readonly slowLine: SlotLine;
  readonly limits: GroupCommitLimits;
  readonly observe: (event: BatchEvent) => void;
}

/** How often a row that lost a race is sent. */
const MAX_ATTEMPTS = 5;
/** After so many batches that failed because of their other rows, a row goes by itself. */
const MAX_BATCHES = 2;

export class GroupCommit {
  readonly #parts: GroupCommitParts;
  readonly #wait: BoundedWait<Entry>;
  readonly #queue: WriteQueue;
  #pumpIsDue = false;

  constructor(parts: GroupCommitParts) {
    const { maxQueuedWrites, maxQueuedBytes, maxWaitMs } = parts.limits;
    this.#parts = parts;
    this.#wait = new BoundedWait({ maxAccepted: maxQueuedWrites, maxAcceptedBytes: maxQueuedBytes, maxWaitMs }, (entry, why) =>
      this.#waitEnded(entry, why),
    );
    this.#queue = new WriteQueue(parts.limits, parts.slowRows);
  }

  get queued(): { readonly writes: number; readonly bytes: number } {
    return { writes: this.#wait.accepted, bytes: this.#wait.bytes };
  }

  submit(request: WriteRequest, { verified, known, shard }: Pick<Entry, "verified" | "known" | "shard">): Promise<WriteOutcome> {
    return new Promise((settle) => {
      // Written out: an object that is spread into another costs five times as much as the rest.
      const entry: Entry = {
        bytes: bytesOf(request),
        giveUp: undefined,
        waitedMs: 0,
        waitsSince: 0,
        overdueAt: 0,
        request,
        verified,
        known,
        shard,
        settle,
        attempts: 0,
        fold: none,
        span: tracing.spans?.current(),
        place: "behind",
        next: undefined,
      };
      const refusal = this.#wait.accept(entry);
      if (refusal !== undefined) {
        settle(refusal);
        return;
      }
      this.#queue.add(entry);
      this.#pumpAfterThisTurn();
    });
  }

  /** Refuses new writes; resolves when every accepted one has its verdict. */
  drain(): Promise<void> {
    return this.#wait.drain();
  }

  /** Answers now whatever was not sent yet. */
  abandonQueue(): void {
    this.#wait.abandon();
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
    for (let entry = this.#queue.takeSlow(); entry !== undefined; entry = this.#queue.takeSlow()) void this.#runSlow(entry);
    while (this.#queue.hasWork) {
      const connection = this.#parts.slots.tryTake();
      if (connection === undefined) return; // #runBatch pumps again after releasing its slot.
      void this.#runBatch(connection, this.#queue.take());
    }
  }

  async #runBatch(connection: WriteConnection, batch: readonly Entry[]): Promise<void> {
    const writes = writesOf(batch);
    for (const entry of writes) this.#wait.start(entry);
    const answers = await this.#send(connection, batch, "fast");
    this.#parts.slots.release(connection);
    for (const [index, entry] of writes.entries()) this.#take(entry, answers[index] as RowAnswer);
    this.#pump();
  }

  async #runSlow(entry: Entry): Promise<void> {
    const { resource } = entry.request;
    const answer = await this.#parts.slowLine.use({ wait: this.#wait, waiter: entry, subject: resource }, async (connection) => {
      const [only] = await this.#send(connection, [entry], "slow");
      return only as RowAnswer;
    });
    this.#take(entry, answer === overloaded ? this.#contention(entry) : answer);
    this.#pump();
  }

  async #send(connection: WriteConnection, batch: readonly Entry[], lane: "fast" | "slow"): Promise<readonly RowAnswer[]> {
    const startedAt = performance.now();
    const send = () => sendBatch(this.#parts, { connection, batch, lane });
    const { spans } = tracing;
    const { answers, outcome } = await (spans === undefined
      ? send()
      : spans.together(
          writesOf(batch).map(({ span }) => span),
          send,
        ));
    this.#parts.observe({ kind: "batch", rows: answers.length, durationMs: performance.now() - startedAt, outcome });
    return answers;
  }

  #take(entry: Entry, answer: RowAnswer): void {
    if (answer.kind !== "retry") {
      this.#finish(entry, answer);
      return;
    }
    entry.attempts += 1;
    this.#parts.observe({ kind: "retried", code: answer.code, rows: 1 });
    if (entry.attempts === MAX_ATTEMPTS) {
      this.#finish(entry, afterLastTry(entry.request.resource, answer));
      return;
    }
    this.#wait.wait(entry);
    this.#queue.again(entry, answer.way === "batch" && entry.attempts >= MAX_BATCHES ? "alone" : answer.way);
  }

  /** Its time to wait is over, or the gateway closes. */
  #waitEnded(entry: Entry, why: Unavailable): void {
    const isHeld = why === overloaded && this.#parts.slowRows.has(entry.request.resource);
    this.#finish(entry, isHeld ? this.#contention(entry) : why);
    this.#pumpAfterThisTurn(); // The next write of its resource may start.
  }

  #contention({ request: { resource } }: Entry): WriteOutcome & { readonly kind: "contention" } {
    return { kind: "contention", resource, code: LOCK_TIMED_OUT };
  }

  #finish(entry: Entry, verdict: WriteOutcome): void {
    const { resource } = entry.request;
    if (verdict.kind === "contention") this.#parts.slowRows.mark(resource);
    else if (verdict.kind === "accepted") this.#parts.slowRows.passed(resource);
    this.#queue.done(entry);
    this.#wait.leave(entry);
    entry.settle(verdict);
  }
}
