// Gathers the writes of one turn of the event loop into one statement, keeps a few statements in
// flight, and finds the answer to each write: accepted, refused and why, unknown, or to be sent
// again. A write that may have been applied is never sent again (G3). The queue decides what goes
// into a batch, and the statement which rows are accepted.
import { type Failure, isRace, rejectsValue, undecidedBy } from "../fence/failure.js";
import { type Accepted, TooLarge, type Unavailable, unavailable, type WriteRequest } from "../fence/verdict.js";
import { BoundedWait, overloaded } from "../store/bounded-wait.js";
import { type HeldRows, LOCK_TIMED_OUT, type WriteSlots } from "../store/slots.js";
import { tracing } from "../store/spans.js";
import { asError, type Row, type WriteConnection } from "../store/write-connection.js";
import { explainRefused } from "./condition.js";
import type { FencedWrites } from "./plain-writes.js";
import { type BatchLimits, bytesOf, type Entry, none, type Way, type WriteOutcome, WriteQueue, writesOf } from "./write-queue.js";

interface GroupCommitLimits extends BatchLimits {
  readonly maxQueuedWrites: number;
  readonly maxQueuedBytes: number;
  readonly maxWaitMs: number;
}

type BatchOutcome = "ok" | "retried" | "unavailable" | "unknown";

export type BatchEvent =
  | {
      readonly kind: "batch";
      /** Its writes: those of a fold are one row for Postgres and counted one by one. */
      readonly rows: number;
      readonly durationMs: number;
      readonly outcome: BatchOutcome;
    }
  | { readonly kind: "retried"; readonly code: string; readonly rows: number };

interface GroupCommitParts {
  readonly writes: { readonly current: FencedWrites };
  readonly heldRows: HeldRows;
  readonly slots: WriteSlots;
  readonly limits: GroupCommitLimits;
  readonly observe: (event: BatchEvent) => void;
}

/** Nothing of it was applied; sent that way, it may pass. */
type Retry = { readonly kind: "retry"; readonly code: string; readonly way: Way; readonly cause?: Error };
type RowAnswer = WriteOutcome | Retry;
interface BatchAnswers {
  /** In the order of `writesOf` the batch. */
  readonly answers: readonly RowAnswer[];
  readonly outcome: BatchOutcome;
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
      const entry: Entry = { request, verified, known, settle, span: tracing.spans?.current(), attempts: 0, fold: none };
      const refusal = this.#wait.accept(entry, bytesOf(request));
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
    const startedAt = performance.now();
    // Whatever is thrown is a fault of this program: it costs this batch its answer, and no other its slot.
    const send = () => this.#send(connection, batch).catch((thrown) => unansweredBy(connection, writes, thrown));
    const { spans } = tracing;
    const { answers, outcome } = await (spans === undefined
      ? send()
      : spans.together(
          writes.map(({ span }) => span),
          send,
        ));
    this.#parts.observe({ kind: "batch", rows: answers.length, durationMs: performance.now() - startedAt, outcome });
    this.#parts.slots.release(connection);
    for (const [index, entry] of writes.entries()) this.#take(entry, answers[index] as RowAnswer);
    this.#pump();
  }

  async #send(connection: WriteConnection, batch: readonly Entry[]): Promise<BatchAnswers> {
    const reply = await this.#parts.writes.current.each(connection, batch);
    if ("rows" in reply) return { answers: await this.#answersTo(connection, batch, reply.rows), outcome: "ok" };
    const { failure } = reply;
    if (failure.kind === "retry_alone") {
      const [only] = batch;
      const answers =
        only !== undefined && batch.length === 1 && only.fold.length === 0
          ? [await this.#failedAlone(connection, only, failure)]
          : await this.#failedTogether(connection, batch, failure.code);
      return { answers, outcome: "retried" };
    }
    const answer = sharedAnswer(failure);
    return { answers: writesOf(batch).map(() => answer), outcome: failure.kind === "retry" ? "retried" : failure.kind };
  }

  async #answersTo(connection: WriteConnection, batch: readonly Entry[], rows: readonly Row[]): Promise<RowAnswer[]> {
    const accepted = new Map(rows.map((row) => [row[0], row]));
    const refused = batch.filter(({ request }) => !accepted.has(request.resource));
    const reasons = refused.length === 0 ? [] : await this.#reasonsFor(connection, refused);
    return batch.flatMap((entry): readonly RowAnswer[] => {
      const row = accepted.get(entry.request.resource);
      const writes = entry.fold.length === 0 ? [entry] : writesOf([entry]);
      if (row !== undefined) return writes.map(({ request }, index) => acceptedOf(request, row, writes.length - 1 - index));
      // What refuses one write of a fold refuses each: they ask for the same token and nothing else.
      const reason = reasons.shift() as RowAnswer;
      return writes.map(() => reason);
    });
  }

  async #reasonsFor(connection: WriteConnection, refused: readonly Entry[]): Promise<RowAnswer[]> {
    const { reasons } = await explainRefused(this.#parts.writes.current, connection, refused);
    return reasons.map((reason) => (reason.kind === "admissible" ? { kind: "retry", code: "race", way: "alone" } : reason));
  }

  /** One of the rows failed the others. Which one is known only of held rows. */
  async #failedTogether(connection: WriteConnection, batch: readonly Entry[], code: string): Promise<RowAnswer[]> {
    const names = batch.map(({ request }) => request.resource);
    const held = code === LOCK_TIMED_OUT ? await this.#parts.writes.current.held(connection, names) : [];
    const way = held?.length === 0 ? "alone" : "batch";
    return writesOf(batch).map(({ request: { resource } }) =>
      held?.includes(resource) ? { kind: "contention", resource, code } : { kind: "retry", code, way },
    );
  }

  async #failedAlone(
    connection: WriteConnection,
    entry: Entry,
    { code, error }: Extract<Failure, { kind: "retry_alone" }>,
  ): Promise<RowAnswer> {
    const { resource } = entry.request;
    // The database was recovered, and the token is not above the floor of resources without a row.
    if (code === "PLS01") return (await this.#reasonsFor(connection, [entry]))[0] as RowAnswer;
    if (code === LOCK_TIMED_OUT) return { kind: "contention", resource, code };
    this.#parts.heldRows.mark(resource, "failed"); // In a batch, the next write of its resource could fail others.
    if (error instanceof TooLarge) return error.refusal;
    if (rejectsValue(code)) return { kind: "value_rejected", resource, message: error.message };
    return unavailable("refused", error);
  }

  #take(entry: Entry, answer: RowAnswer): void {
    if (answer.kind !== "retry") {
      this.#finish(entry, answer);
      return;
    }
    entry.attempts += 1;
    // It may have come back because its resource has no row, although it was remembered to have one:
    // the cheaper statement would miss it again.
    entry.known = false;
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
      for (const later of isHeld ? this.#queue.behind(entry) : none) if (this.#wait.isWaiting(later)) this.#answer(later, heldFor(later));
    }
    this.#answer(entry, verdict);
  }

  #answer(entry: Entry, verdict: WriteOutcome): void {
    this.#queue.done(entry);
    this.#wait.leave(entry);
    entry.settle(verdict);
  }
}

function sharedAnswer(failure: Exclude<Failure, { readonly kind: "retry_alone" }>): RowAnswer {
  return failure.kind === "retry" ? { kind: "retry", code: failure.code, way: "alone", cause: failure.error } : undecidedBy(failure);
}

/** Anything may have been sent, and what the connection would answer next is not known either. */
function unansweredBy(connection: WriteConnection, writes: readonly Entry[], thrown: unknown): BatchAnswers {
  connection.destroy();
  const answer = undecidedBy({ kind: "unknown", reason: "connection_lost", error: asError(thrown) });
  return { answers: writes.map(() => answer), outcome: "unknown" };
}

/** The answer to a row that was sent again as often as may be. */
function afterLastTry(resource: string, { code, cause }: Retry): WriteOutcome {
  if (isRace(code)) return { kind: "contention", resource, code };
  return unavailable("refused", cause);
}

/** `later` writes of the same row came after this one. */
export function acceptedOf({ op, resource, token }: WriteRequest, row: Row, later = 0): Accepted {
  const [, newest, born, deleted, value] = row;
  const rev = Number(newest) - later;
  const isShown = op === "patch" || (op === "seal" && (value !== null || deleted === true));
  const shown = isShown ? { value: value as string | null } : {};
  return {
    kind: "accepted",
    resource,
    rev,
    token,
    created: op === "put" && Number(born) === rev,
    deleted: deleted === true,
    ...shown,
  };
}

function heldFor({ request: { resource } }: Entry): WriteOutcome {
  return { kind: "contention", resource, code: LOCK_TIMED_OUT };
}
