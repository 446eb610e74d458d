// Gathers the writes of one turn of the event loop into one statement, and keeps a few statements
// in flight. It decides when a batch starts and what happens to rows that must be sent again; the
// queue decides what goes into a batch, and the statement which rows are accepted.
import type { Unavailable, WriteRequest } from "../fence/verdict.js";
import { BoundedWait, overloaded } from "../store/bounded-wait.js";
import { LOCK_TIMED_OUT, type WriteSlots } from "../store/slots.js";
import { tracing } from "../store/spans.js";
import type { WriteConnection } from "../store/write-connection.js";
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
  readonly limits: GroupCommitLimits;
  readonly observe: (event: BatchEvent) => void;
}

/** How often a row that lost a race is sent; a patch loses one to each write of another gateway. */
const MAX_ATTEMPTS = 8;
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
    this.#queue = new WriteQueue(parts.limits, parts.heldRows);
  }

  get queued(): { readonly writes: number; readonly bytes: number } {
    return { writes: this.#wait.accepted, bytes: this.#wait.bytes };
  }

  submit(request: WriteRequest, { verified, known }: Pick<Entry, "verified" | "known">): Promise<WriteOutcome> {
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
    while (this.#queue.hasWork) {
      const connection = this.#parts.slots.tryTake();
      if (connection === undefined) return; // #runBatch pumps again after releasing its slot.
      void this.#runBatch(connection, this.#queue.take());
    }
  }

  async #runBatch(connection: WriteConnection, batch: readonly Entry[]): Promise<void> {
    const writes = writesOf(batch);
    for (const entry of writes) this.#wait.start(entry);
    const answers = await this.#send(connection, batch);
    this.#parts.slots.release(connection);
    for (const [index, entry] of writes.entries()) this.#take(entry, answers[index] as RowAnswer);
    this.#pump();
  }

  async #send(connection: WriteConnection, batch: readonly Entry[]): Promise<readonly RowAnswer[]> {
    const startedAt = performance.now();
    const send = () => sendBatch(this.#parts, { connection, batch });
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
    const isHeld = why === overloaded && this.#parts.heldRows.has(entry.request.resource);
    this.#answer(entry, isHeld ? heldFor(entry) : why);
    this.#pumpAfterThisTurn(); // The next write of its resource may start.
  }

  /** Whoever waits for a row that was found held is told so as well: nothing else can have come of it. */
  #finish(entry: Entry, verdict: WriteOutcome): void {
    const { heldRows } = this.#parts;
    const { resource } = entry.request;
    if (verdict.kind === "accepted") heldRows.passed(resource);
    if (verdict.kind === "contention") {
      const isHeld = verdict.code === LOCK_TIMED_OUT;
      heldRows.mark(resource, isHeld ? "held" : "failed");
      for (let { next } = entry; isHeld && next !== undefined; next = next.next)
        if (this.#wait.isWaiting(next)) this.#answer(next, heldFor(next));
    }
    this.#answer(entry, verdict);
  }

  #answer(entry: Entry, verdict: WriteOutcome): void {
    this.#queue.done(entry);
    this.#wait.leave(entry);
    entry.settle(verdict);
  }
}

function heldFor({ request: { resource } }: Entry): WriteOutcome {
  return { kind: "contention", resource, code: LOCK_TIMED_OUT };
}
