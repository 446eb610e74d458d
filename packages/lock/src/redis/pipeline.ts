// Gathers what is asked of one node in one turn of the event loop into one script call, keeps what was sent until it is answered, and gives every question an
// answer in time. Questions leave in the order in which they were asked. Never retries a question; a release whose outcome is unknown becomes a debt.

import type { Clock, Timer } from "../platform/clock.js";
import type { Ballot, Unreachable } from "../protocol/ballot.js";
import type { Answer, ReleaseQuestion } from "../protocol/node.js";
import { incarnationIn } from "./admission-record.js";
import { causeOf, causeOfText } from "./causes.js";
import { type CallEncoder, type EncodedCall, endOfBatch, type Run } from "./encoded-call.js";
import type { PendingReleases } from "./pending-releases.js";
import { Asked } from "./pending-reply.js";
import { type CallReply, type Heard, type RequestKind, readCall, release } from "./requests.js";
import type { TurnEnd } from "./turn-end.js";

/** The stream the calls go into; see Connection. */
export interface Stream {
  readonly isUp: boolean;
  readonly cause: string;
  send(call: EncodedCall, belief: string | undefined): Promise<unknown>;
  teachAgain(): Promise<void>;
  breakOff(cause: string): void;
}

export interface PipelineSettings {
  readonly node: string;
  readonly encoder: CallEncoder;
  readonly turnEnd: TurnEnd;
  readonly clock: Clock;
  readonly nodeTimeoutMs: number;
  readonly stream: Stream;
  readonly pendingReleases: PendingReleases;
  /** What the node's record says as far as we have heard; undefined if we have not. */
  readonly belief: () => string | undefined;
  /** Told with every reply, late ones included, in the order in which the node spoke. Empty: quarantined. */
  readonly onHeard: (belief: string) => void;
}

/** What a node that does not believe its memory answers; the caller makes a ballot of it. */
export interface NotAdmitted {
  readonly kind: "quarantined";
  readonly node: string;
}

interface Sent {
  readonly asked: Run;
  readonly sentAt: number;
  /** What the node was asked to confirm. */
  believed: string | undefined;
  expired: boolean;
}

/** Sent and unanswered, late ones included. Only releases are sent to a node that has gone silent, so this is rarely met. */
const MAX_UNANSWERED = 8_192;
/** After our own event loop stood still, the answers are often there already: let them be read before anybody is called too late. */
const GRACE_MS = 1;
/** Under steady load the line is never empty: some of what is owed travels with every turn. */
const DEBTS_PER_ANSWER = 64;
const SILENCE_TIMEOUTS = 10;
const SILENCE_MIN_MS = 500;

export class Pipeline {
  readonly #settings: PipelineSettings;
  readonly #silenceMs: number;
  #queue: Asked[] = [];
  #sent: Sent[] = [];
  #lastSent: Sent | undefined;
  #unanswered = 0;
  #timer: Timer | undefined;
  /** A node that goes on answering is not silent, however long the line is in which a question stands. */
  #lastHeardAt = Number.NEGATIVE_INFINITY;
  readonly #flush = (): void => this.#flushQueue();

  constructor(settings: PipelineSettings) {
    this.#settings = settings;
    this.#silenceMs = Math.max(SILENCE_MIN_MS, SILENCE_TIMEOUTS * settings.nodeTimeoutMs);
  }

  /** The node's answer, or why there is none. Never rejects. */
  ask<Q, B extends Ballot>(kind: RequestKind<Q, B>, question: Q): Answer<B | NotAdmitted | Unreachable> {
    const refusal = this.#refusal(kind as RequestKind<unknown, Ballot>);
    if (refusal !== undefined) {
      this.#owe(kind as RequestKind<unknown, Ballot>, question);
      return Promise.resolve({ ...this.#unreachable(refusal), unsent: true });
    }
    if (this.#queue.length === 0) this.#settings.turnEnd.add(this.#flush);
    const asked = new Asked(kind as RequestKind<unknown, Ballot>, question);
    this.#queue.push(asked);
    return asked as Answer<Ballot> as Answer<B>;
  }

  /** The connection is gone: what was on its way has an unknown outcome. */
  lost(cause: string): void {
    const sent = this.#sent;
    this.#sent = [];
    this.#unanswered = 0;
    for (const batch of sent) this.#giveUp(batch, cause);
  }

  /** Pays what is owed, or the oldest so many; the node can be asked again. */
  resendReleases(atMost = Number.POSITIVE_INFINITY): void {
    for (const debt of this.#settings.pendingReleases.take(this.#settings.clock.monotonicMs(), atMost)) {
      // The outcome is nobody's business any more; if it stays unknown it is owed again.
      void this.ask(release, debt);
    }
  }

  close(): void {
    this.#settings.clock.clearTimer(this.#timer);
    this.#timer = undefined;
    this.#flushQueue();
    this.lost("closed");
  }

  /** Nothing is on its way any more that could still be answered in time. */
  get isIdle(): boolean {
    return this.#queue.length === 0 && !this.#sent.some((batch) => !batch.expired);
  }

  #refusal(kind: RequestKind<unknown, Ballot>): string | undefined {
    const { stream, clock } = this.#settings;
    if (!stream.isUp) return stream.cause;
    // Releases pass a little longer: they are what takes the load away.
    const most = kind === release ? 2 * MAX_UNANSWERED : MAX_UNANSWERED;
    if (this.#unanswered + this.#queue.length >= most) return `overloaded: ${MAX_UNANSWERED} questions unanswered`;
    const oldest = this.#sent[0];
    // An answer could only come behind one that is late already. A release must still be sent: it gives back what may have been granted.
    if (oldest?.expired && kind !== release) return `TIMEOUT: silent for ${Math.round(clock.monotonicMs() - oldest.sentAt)} ms`;
    return undefined;
  }

  #flushQueue(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (let start = 0; start < queue.length; ) {
      const end = endOfBatch(queue, start);
      const asked = (end - start === queue.length ? queue : queue.slice(start, end)) as unknown as Run;
      start = end;
      const batch: Sent = { asked, sentAt: this.#settings.clock.monotonicMs(), believed: undefined, expired: false };
      if (this.#settings.stream.isUp) this.#send(batch);
      else this.#giveUp(batch, this.#settings.stream.cause);
    }
  }

  #send(batch: Sent): void {
    this.#sent.push(batch);
    this.#lastSent = batch;
    this.#unanswered += batch.asked.length;
    this.#arm(this.#settings.nodeTimeoutMs);
    this.#transmit(batch).then(
      (reply) => this.#answered(batch, reply),
      (error: unknown) => this.#failed(batch, error),
    );
  }

  #transmit(batch: Sent): Promise<unknown> {
    const { encoder, stream, belief } = this.#settings;
    const call = encoder.encode(batch.asked);
    batch.believed = call.asksToConfirm ? belief() : undefined;
    return stream.send(call, batch.believed);
  }

  /** False if it is not on its way any more: its connection was lost, and it has been given up. */
  #settle(batch: Sent): boolean {
    const index = this.#sent[0] === batch ? 0 : this.#sent.indexOf(batch);
    if (index < 0) return false;
    if (index === 0) this.#sent.shift();
    else this.#sent.splice(index, 1);
    this.#unanswered -= batch.asked.length;
    return true;
  }

  #answered(batch: Sent, reply: unknown): void {
    const { onHeard, node } = this.#settings;
    if (!this.#settle(batch)) return;
    this.#lastHeardAt = this.#settings.clock.monotonicMs();
    let answer: CallReply;
    try {
      answer = readCall(reply, batch.asked.length, batch.believed);
    } catch (error) {
      this.#giveUp(batch, causeOf(error));
      return;
    }
    const { belief, replies } = answer;
    if (belief !== undefined) onHeard(belief);
    if (batch.expired) return;
    const heard: Heard = { node, epoch: belief === undefined ? "" : incarnationIn(belief) };
    let index = 0;
    for (const asked of batch.asked) asked.resolve(this.#read(asked, heard, replies[index++]));
    if (this.#settings.pendingReleases.size > 0) this.resendReleases(DEBTS_PER_ANSWER);
  }

  #read({ kind, question }: Asked, heard: Heard, reply: unknown): Ballot {
    if (reply === null) return { kind: "quarantined", node: heard.node };
    if (typeof reply === "string") return this.#unreachable(causeOfText(reply));
    try {
      return kind.read(heard, reply, question);
    } catch (error) {
      return this.#unreachable(causeOf(error));
    }
  }

  #failed(batch: Sent, error: unknown): void {
    // Whether or not it may be sent again: under steady load there is always another call behind the one that failed.
    if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
      this.#settings.stream.teachAgain().then(
        () => this.#again(batch, error),
        () => this.#lose(batch, error),
      );
      return;
    }
    this.#lose(batch, error);
  }

  /** Nothing of it was executed. Sent again only if nothing has been asked since: a grant must not overtake its own release. */
  #again(batch: Sent, error: unknown): void {
    if (!this.#isLast(batch)) {
      this.#lose(batch, error);
      return;
    }
    this.#transmit(batch).then(
      (reply) => this.#answered(batch, reply),
      (again: unknown) => this.#lose(batch, again),
    );
  }

  #isLast(batch: Sent): boolean {
    return this.#settings.stream.isUp && !batch.expired && this.#lastSent === batch;
  }

  #lose(batch: Sent, error: unknown): void {
    const { stream } = this.#settings;
    // While the connection is lost ioredis only says that it is.
    if (this.#settle(batch)) this.#giveUp(batch, stream.isUp ? causeOf(error) : stream.cause);
  }

  #giveUp(batch: Sent, cause: string): void {
    const answer = this.#unreachable(cause);
    for (const asked of batch.asked) {
      this.#owe(asked.kind, asked.question);
      if (!batch.expired) asked.resolve(answer);
    }
  }

  #owe(kind: RequestKind<unknown, Ballot>, question: unknown): void {
    if (kind === release) this.#settings.pendingReleases.add(question as ReleaseQuestion, this.#settings.clock.monotonicMs());
  }

  #unreachable(cause: string): Unreachable {
    return { kind: "unreachable", node: this.#settings.node, cause };
  }

  // One timer for all calls: it goes off for the oldest, is set again for the next, and never sleeps longer than a question sent meanwhile may take.
  #arm(delayMs: number): void {
    this.#timer ??= this.#settings.clock.setBackgroundTimer(delayMs, () => {
      this.#timer = this.#settings.clock.setBackgroundTimer(GRACE_MS, () => {
        this.#timer = undefined;
        this.#expire();
      });
    });
  }

  #expire(): void {
    const { clock, nodeTimeoutMs, stream } = this.#settings;
    const now = clock.monotonicMs();
    const answer = this.#unreachable(`TIMEOUT after ${nodeTimeoutMs} ms`);
    let next = Number.POSITIVE_INFINITY;
    for (const batch of this.#sent) {
      if (batch.expired) continue;
      const leftMs = Math.max(batch.sentAt, this.#lastHeardAt) + nodeTimeoutMs - now;
      if (leftMs > GRACE_MS) {
        next = leftMs;
        break;
      }
      batch.expired = true;
      for (const asked of batch.asked) asked.resolve(answer);
    }
    const oldest = this.#sent[0];
    if (oldest === undefined) return;
    const silenceLeftMs = Math.max(oldest.sentAt, this.#lastHeardAt) + this.#silenceMs - now;
    if (silenceLeftMs <= 0) stream.breakOff(`TIMEOUT: silent for ${this.#silenceMs} ms`);
    else this.#arm(Math.max(1, Math.min(next, silenceLeftMs, nodeTimeoutMs)));
  }
}
