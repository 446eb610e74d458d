// Gathers what one node is asked in one turn of the event loop into script calls, keeps what was
// sent until it is answered, and gives every request a ballot in time. Requests are sent in the
// order in which they were asked, and never again; only a release whose outcome is unknown is kept
// and sent later. Below the pipeline: what a batch is, how it becomes one call for all nodes, and
// the releases that are kept.
import type { Clock, Timer } from "../platform/clock.js";
import type { Ballot, Quarantined, Unreachable } from "../protocol/ballot.js";
import { type ReleaseQuestion, type Reply, ROLL_CALL } from "../protocol/node.js";
import { type Connection, causeOf, causeOfText, otherGeneration } from "./connection.js";
import { EncodedCall } from "./link.js";
import type { Vote } from "./record.js";
import { type CallReply, type Heard, type RequestKind, readCall, release, writeCall } from "./requests.js";
import type { Keys } from "./script-call.js";

interface PipelineSettings {
  readonly node: string;
  readonly encoder: BatchEncoder;
  readonly clock: Clock;
  readonly nodeTimeoutMs: number;
  /** The connection that the calls go into. */
  readonly stream: Pick<Connection, "isUp" | "cause" | "send" | "teachAgain" | "breakOff">;
  readonly pendingReleases: PendingReleases;
  /** The node's admission record as last heard; undefined if it is not known. */
  readonly record: () => string | undefined;
  /** Called with the record in every reply, late ones included, in order. Empty: quarantined. */
  readonly onRecord: (record: string) => Vote | undefined;
  /** The generation whose votes count now. */
  readonly votingIn: { readonly generation: string };
}

interface SentBatch {
  readonly requests: Batch;
  readonly sentAt: number;
  /** What the node was asked to confirm. */
  record: string | undefined;
  isLate: boolean;
}

/**
 * After a stall of the event loop replies are often there already: they are read before any request
 * counts as late.
 */
const GRACE_MS = 1;
/** Under steady load the queue is never empty: some pending releases travel with every turn. */
const RELEASES_PER_REPLY = 64;
/** A node that refuses releases is sent them again so often, whatever else it is asked. */
const REFUSED_AGAIN_MS = 250;
const SILENCE_TIMEOUTS = 10;
const SILENCE_MIN_MS = 500;

export class Pipeline {
  readonly #settings: PipelineSettings;
  readonly #silenceMs: number;
  #queue: PendingReply[] = [];
  #sent: SentBatch[] = [];
  #lastSent: SentBatch | undefined;
  #timer: Timer | undefined;
  #refusedTimer: Timer | undefined;
  /** A node that goes on answering is not silent, however long the queue in front of a request. */
  #lastHeardAt = Number.NEGATIVE_INFINITY;
  readonly #flush = (): void => this.#flushQueue();

  constructor(settings: PipelineSettings) {
    this.#settings = settings;
    this.#silenceMs = Math.max(SILENCE_MIN_MS, SILENCE_TIMEOUTS * settings.nodeTimeoutMs);
  }

  /** The node's ballot, or why there is none. Never rejects. */
  ask<Q, B extends Ballot>(kind: RequestKind<Q, B>, question: Q): Reply<B | Quarantined | Unreachable> {
    const refusal = this.#refusal(kind as RequestKind<unknown, Ballot>);
    if (refusal !== undefined) {
      this.#keepRelease(kind as RequestKind<unknown, Ballot>, question);
      return Promise.resolve({ ...this.#unreachable(refusal), unsent: true });
    }
    if (this.#queue.length === 0) this.#settings.encoder.atTurnEnd(this.#flush);
    const pending = new PendingReply(kind as RequestKind<unknown, Ballot>, question, this.#settings.votingIn.generation);
    this.#queue.push(pending);
    return pending as Reply<Ballot> as Reply<B>;
  }

  /** The connection is gone: what was on its way has an unknown outcome. */
  lost(cause: string): void {
    const sent = this.#sent;
    this.#sent = [];
    for (const batch of sent) this.#giveUp(batch, cause);
  }

  /** Sends pending releases, or the oldest so many; the node can be asked again. */
  resendReleases(atMost = Number.POSITIVE_INFINITY): void {
    for (const question of this.#settings.pendingReleases.take(atMost)) {
      // Its ballot is not needed; if its outcome stays unknown it is kept again.
      void this.ask(release, question);
    }
  }

  close(): void {
    this.#settings.clock.clearTimer(this.#timer);
    this.#settings.clock.clearTimer(this.#refusedTimer);
    this.#timer = undefined;
    this.#flushQueue();
    this.lost("closed");
  }

  /** Nothing is on its way any more that could still be answered in time. */
  get isIdle(): boolean {
    return this.#queue.length === 0 && !this.#sent.some((batch) => !batch.isLate);
  }

  #refusal(kind: RequestKind<unknown, Ballot>): string | undefined {
    const { stream, clock } = this.#settings;
    if (!stream.isUp) return stream.cause;
    const oldest = this.#sent[0];
    // A reply could only come behind one that is late already. A release must still be sent: it
    // gives back what may have been granted.
    if (oldest?.isLate && kind !== release) return `TIMEOUT: silent for ${Math.round(clock.monotonicMs() - oldest.sentAt)} ms`;
    return undefined;
  }

  #flushQueue(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (let start = 0; start < queue.length; ) {
      const end = endOfBatch(queue, start);
      const requests = (end - start === queue.length ? queue : queue.slice(start, end)) as unknown as Batch;
      start = end;
      const { clock, stream } = this.#settings;
      const batch: SentBatch = { requests, sentAt: clock.monotonicMs(), record: undefined, isLate: false };
      if (stream.isUp) this.#send(batch);
      else this.#giveUp(batch, stream.cause);
    }
  }

  #send(batch: SentBatch): void {
    this.#sent.push(batch);
    this.#lastSent = batch;
    this.#arm(this.#settings.nodeTimeoutMs);
    this.#transmit(batch, (error) => this.#failed(batch, error));
  }

  #transmit(batch: SentBatch, failed: (error: unknown) => void): void {
    const { encoder, stream, record } = this.#settings;
    const call = encoder.encode(batch.requests);
    batch.record = call.confirmsRecord ? record() : undefined;
    stream.send(call, batch.record).then((reply) => this.#answered(batch, reply), failed);
  }

  /** False if it is not on its way any more: its connection was lost, and it has been given up. */
  #settle(batch: SentBatch): boolean {
    const index = this.#sent[0] === batch ? 0 : this.#sent.indexOf(batch);
    if (index < 0) return false;
    if (index === 0) this.#sent.shift();
    else this.#sent.splice(index, 1);
    return true;
  }

  #answered(batch: SentBatch, reply: unknown): void {
    const { node, onRecord, pendingReleases } = this.#settings;
    if (!this.#settle(batch)) return;
    this.#lastHeardAt = this.#settings.clock.monotonicMs();
    let answer: CallReply;
    try {
      answer = readCall(reply, batch.requests.length, batch.record);
    } catch (error) {
      this.#giveUp(batch, causeOf(error));
      return;
    }
    const { record, replies } = answer;
    const vote = record === undefined ? undefined : onRecord(record);
    const heard: Heard = { node, epoch: vote?.epoch ?? "" };
    let index = 0;
    for (const pending of batch.requests) {
      const reply = replies[index++];
      if (typeof reply === "string") this.#keepRefused(pending);
      if (!batch.isLate) pending.resolve(this.#uncounted(pending, vote) ?? this.#read(pending, heard, reply));
    }
    if (pendingReleases.size > 0 && this.#refusedTimer === undefined) this.resendReleases(RELEASES_PER_REPLY);
  }

  /** A vote of another generation does not count: those members may have a quorum as well (M1). */
  #uncounted(pending: PendingReply, vote: Vote | undefined): Unreachable | undefined {
    if (vote === undefined || vote.generation === pending.generation) return undefined;
    return this.#unreachable(otherGeneration(vote.generation, pending.generation));
  }

  #read({ kind, question }: PendingReply, heard: Heard, reply: unknown): Ballot {
    if (reply === null) return { kind: "quarantined", node: heard.node };
    if (typeof reply === "string") return this.#unreachable(causeOfText(reply));
    try {
      return kind.read(heard, reply, question);
    } catch (error) {
      return this.#unreachable(causeOf(error));
    }
  }

  #failed(batch: SentBatch, error: unknown): void {
    // Taught again even if this batch may not be sent again: under steady load there is always
    // another call behind the one that failed.
    if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
      this.#settings.stream.teachAgain().then(
        () => this.#again(batch, error),
        () => this.#lose(batch, error),
      );
      return;
    }
    this.#lose(batch, error);
  }

  /**
   * Nothing of it was executed. Sent again only if nothing was sent since: a grant must not
   * overtake its own release.
   */
  #again(batch: SentBatch, error: unknown): void {
    const isLast = this.#settings.stream.isUp && !batch.isLate && this.#lastSent === batch;
    if (isLast) this.#transmit(batch, (again) => this.#lose(batch, again));
    else this.#lose(batch, error);
  }

  #lose(batch: SentBatch, error: unknown): void {
    const { stream } = this.#settings;
    if (!this.#settle(batch)) return;
    // While the connection is lost ioredis only says that it is.
    if (!stream.isUp) {
      this.#giveUp(batch, stream.cause);
      return;
    }
    const ballot = this.#unreachable(causeOf(error));
    for (const pending of batch.requests) {
      this.#keepRefused(pending);
      if (!batch.isLate) pending.resolve(ballot);
    }
  }

  #giveUp(batch: SentBatch, cause: string): void {
    const ballot = this.#unreachable(cause);
    for (const pending of batch.requests) {
      this.#keepRelease(pending.kind, pending.question);
      if (!batch.isLate) pending.resolve(ballot);
    }
  }

  #keepRelease(kind: RequestKind<unknown, Ballot>, question: unknown): void {
    if (kind === release) this.#settings.pendingReleases.add(question as ReleaseQuestion, this.#settings.clock.monotonicMs());
  }

  #keepRefused({ kind, question }: PendingReply): void {
    const { clock, pendingReleases, stream } = this.#settings;
    if (kind !== release) return;
    pendingReleases.addRefused(question as ReleaseQuestion, clock.monotonicMs());
    this.#refusedTimer ??= clock.setBackgroundTimer(REFUSED_AGAIN_MS, () => {
      this.#refusedTimer = undefined;
      if (stream.isUp) this.resendReleases(RELEASES_PER_REPLY);
    });
  }

  #unreachable(cause: string): Unreachable {
    return { kind: "unreachable", node: this.#settings.node, cause };
  }

  // One timer for all calls: it fires for the oldest, is set again for the next, and never sleeps
  // longer than a request sent meanwhile may take.
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
    const ballot = this.#unreachable(`TIMEOUT after ${nodeTimeoutMs} ms`);
    let next = Number.POSITIVE_INFINITY;
    for (const batch of this.#sent) {
      if (batch.isLate) continue;
      const leftMs = Math.max(batch.sentAt, this.#lastHeardAt) + nodeTimeoutMs - now;
      if (leftMs > GRACE_MS) {
        next = leftMs;
        break;
      }
      batch.isLate = true;
      for (const pending of batch.requests) pending.resolve(ballot);
    }
    const oldest = this.#sent[0];
    if (oldest === undefined) return;
    const silenceLeftMs = Math.max(oldest.sentAt, this.#lastHeardAt) + this.#silenceMs - now;
    if (silenceLeftMs <= 0) stream.breakOff(`TIMEOUT: silent for ${this.#silenceMs} ms`);
    else this.#arm(Math.max(1, Math.min(next, silenceLeftMs, nodeTimeoutMs)));
  }
}

/**
 * One request to one node and the callback for its ballot. Every lease needs ten of them, so this
 * is one object without a promise.
 */
export class PendingReply implements Reply<Ballot> {
  readonly kind: RequestKind<unknown, Ballot>;
  readonly question: unknown;
  /** The generation in which it was asked: an answer of another one does not count. */
  readonly generation: string;
  #ballot: Ballot | undefined;
  #callback: ((ballot: Ballot) => void) | undefined;

  constructor(kind: RequestKind<unknown, Ballot>, question: unknown, generation: string) {
    this.kind = kind;
    this.question = question;
    this.generation = generation;
  }

  // biome-ignore lint/suspicious/noThenProperty: to be awaited is what it is for.
  then(callback: (ballot: Ballot) => void): void {
    if (this.#ballot !== undefined) void Promise.resolve(this.#ballot).then(callback);
    else if (this.#callback === undefined) this.#callback = callback;
    else throw new Error("a reply has one callback");
  }

  /** Calls back at once, within this call. */
  resolve(ballot: Ballot): void {
    this.#ballot = ballot;
    this.#callback?.(ballot);
  }
}

/**
 * At least one request, all of one kind, with equally many resources, and alike in what is shared.
 */
export type Batch = readonly [PendingReply, ...PendingReply[]];

/** A server executes a call in one go, and nothing else meanwhile. */
const MAX_REQUESTS_PER_CALL = 256;
const MAX_RESOURCES_PER_CALL = 1_024;

/**
 * Where the batch that begins here ends: requests of another kind follow in a call of their own, in
 * order.
 */
export function endOfBatch(queue: readonly PendingReply[], start: number): number {
  const first = queue[start];
  if (first === undefined) return start;
  const { kind, question } = first;
  const resources = kind.resourcesOf(question);
  const shared = kind.sharedBy(question);
  const ticket = kind.ticketOf?.(question);
  const limit = Math.min(queue.length, start + MAX_REQUESTS_PER_CALL, start + Math.ceil(MAX_RESOURCES_PER_CALL / resources));
  let end = start + 1;
  for (; end < limit; end++) {
    const next = queue[end];
    if (next?.kind !== kind || kind.resourcesOf(next.question) !== resources || kind.sharedBy(next.question) !== shared) break;
    if (kind.ticketOf?.(next.question) !== ticket) break;
  }
  return end;
}

/**
 * Each node is written to once per turn of the event loop; few turns have batches of more kinds.
 */
const REMEMBERED = 4;

/**
 * What the nodes of a fleet share: the end of a turn, and calls that are encoded once, since every
 * node is sent the same requests in the same order.
 */
export class BatchEncoder {
  readonly #keys: Keys;
  readonly #encoded: { readonly batch: Batch; readonly call: EncodedCall }[] = [];
  #oldest = 0;
  #atTurnEnd: (() => void)[] = [];
  readonly #run = (): void => {
    const due = this.#atTurnEnd;
    this.#atTurnEnd = [];
    for (const run of due) run();
  };
  readonly #schedule = (): void => process.nextTick(this.#run);

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  /** The call for this batch; the very same one for each node that is sent the same. */
  encode(batch: Batch): EncodedCall {
    for (const { batch: other, call } of this.#encoded) if (areSame(batch, other)) return call;
    const { kind, question } = batch[0];
    const isSingleGrant = kind.name === "grant" && batch.length === 1 && kind.resourcesOf(question) === 1;
    const call = new EncodedCall(kind.name, writeCall(kind, this.#keys, batch), isSingleGrant);
    this.#encoded[this.#oldest] = { batch, call };
    this.#oldest = (this.#oldest + 1) % REMEMBERED;
    return call;
  }

  /**
   * Calls back after all microtasks of the present turn, so that callers that wake together travel
   * together. `run` must not throw.
   */
  atTurnEnd(run: () => void): void {
    // Not queueMicrotask, which makes an async resource of every call.
    if (this.#atTurnEnd.length === 0) void Promise.resolve().then(this.#schedule);
    this.#atTurnEnd.push(run);
  }
}

function areSame(one: Batch, other: Batch): boolean {
  if (one.length !== other.length || one[0].kind !== other[0].kind) return false;
  for (let i = 0; i < one.length; i++) if (one[i]?.question !== other[i]?.question) return false;
  return true;
}

const MAX_PENDING = 10_000;

interface PendingRelease {
  readonly question: ReleaseQuestion;
  readonly until: number;
}

/**
 * Releases whose outcome is unknown, or that the node refused to execute: asked while it could not
 * be asked, or on their way when the connection was lost. They are sent when the node is back,
 * however late: a node that stood still executes what it had received when it goes on, so a key may
 * be younger than its release. Bounded: beyond the bound the time to live frees the resource.
 */
export class PendingReleases {
  readonly #lifeMs: number;
  readonly #onDropped: (count: number, reason: string) => void;
  #releases: PendingRelease[] = [];
  readonly #refusedSince = new WeakMap<ReleaseQuestion, number>();
  #dropped = 0;
  /** How many there are. A field, since every reply reads it. */
  size = 0;

  /** `lifeMs`: after this long a release may make room for a new one. */
  constructor(lifeMs: number, onDropped: (count: number, reason: string) => void) {
    this.#lifeMs = lifeMs;
    this.#onDropped = onDropped;
  }

  add(asked: ReleaseQuestion, now: number): void {
    // Gives nothing back, and would take the places of those that wait by then.
    if (asked.owner === ROLL_CALL) return;
    const question = withoutTicket(asked);
    if (this.#releases.length >= MAX_PENDING) this.#dropOld(now);
    // The old ones are kept: their keys were there when the connection was lost, while later
    // acquisitions found no node to leave a key on.
    if (this.#releases.length >= MAX_PENDING) this.#dropped++;
    else this.#releases.push({ question, until: now + this.#lifeMs });
    this.size = this.#releases.length;
  }

  /**
   * The node answers, so its keys run out: after the longest life of a key there is nothing to
   * release.
   */
  addRefused(asked: ReleaseQuestion, now: number): void {
    const question = withoutTicket(asked);
    const since = this.#refusedSince.get(question) ?? now;
    this.#refusedSince.set(question, since);
    if (now - since <= this.#lifeMs) this.add(question, now);
  }

  /** Removes and returns the oldest so many. */
  take(atMost = Number.POSITIVE_INFINITY): readonly ReleaseQuestion[] {
    if (this.#dropped > 0) this.#onDropped(this.#dropped, `more than ${MAX_PENDING} were waiting for the node`);
    const due = this.#releases.slice(0, atMost).map(({ question }) => question);
    this.#releases = this.#releases.slice(due.length);
    this.#dropped = 0;
    this.size = this.#releases.length;
    return due;
  }

  #dropOld(now: number): void {
    // In the order of their ends, since all lives are equally long.
    const alive = this.#releases.findIndex(({ until }) => until > now);
    if (alive !== 0) this.#releases = alive < 0 ? [] : this.#releases.slice(alive);
  }
}

/** By the time that it is sent again, the ticket may be that of another caller of this process. */
function withoutTicket(question: ReleaseQuestion): ReleaseQuestion {
  return question.ticket === undefined ? question : { ...question, ticket: undefined };
}
