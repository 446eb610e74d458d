// What one node is asked: gathered in one turn of the event loop, sent as script calls, kept until it
// is answered; every request has a ballot in time. Requests are sent in the order in which they were
// asked, and never again; only what gives back, and has an unknown outcome, is kept and sent later.
import type { Clock, Timer } from "../platform/clock.js";
import type { Ballot, Quarantined, Unreachable } from "../protocol/ballot.js";
import type { Reply } from "../protocol/node.js";
import type { Answerer, AnyVerb, Asked } from "../protocol/verbs.js";
import { type Batch, type BatchEncoder, endOfBatch, type Request, readCall } from "./calls.js";
import { type Connection, causeOf, causeOfText, otherGeneration } from "./connection.js";
import type { Term } from "./record.js";

interface PipelineSettings {
  readonly node: AskedNode;
  readonly encoder: BatchEncoder;
  readonly clock: Clock;
  readonly nodeTimeoutMs: number;
  /** The connection that the calls go into. */
  readonly stream: Pick<Connection, "isUp" | "cause" | "send" | "teachAgain" | "breakOff">;
  readonly pendingReleases: PendingReleases;
  /** The generation whose votes count now. */
  readonly votingIn: { readonly generation: string };
}

/** What the pipeline knows of its node, and tells it. */
interface AskedNode {
  readonly name: string;
  readonly confirmedAdmission: string | undefined;
  /** Called with the field admitted in every reply, late ones included, in order. Empty: quarantined. */
  noteAdmission(admitted: string): Term | undefined;
  quarantined(): Quarantined;
}

interface SentBatch {
  readonly requests: Batch<PendingReply>;
  readonly sentAt: number;
  /** What the node was asked to confirm. */
  admission: string | undefined;
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
/** The mean of about so many is kept. */
const ROUND_TRIPS = 8;
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
  /** As measured, with the time in which this process was busy; 0 before the first answer. */
  roundTripMs = 0;
  /** The shortest of all. */
  distanceMs = Number.POSITIVE_INFINITY;
  readonly #flush = (): void => this.#flushQueue();

  constructor(settings: PipelineSettings) {
    this.#settings = settings;
    this.#silenceMs = Math.max(SILENCE_MIN_MS, SILENCE_TIMEOUTS * settings.nodeTimeoutMs);
  }

  /** The node's ballot, or why there is none. Never rejects. */
  ask(verb: AnyVerb, question: Asked): Reply<Ballot> {
    const { encoder, stream, votingIn } = this.#settings;
    const pending = new PendingReply(verb, question, votingIn.generation);
    if (!stream.isUp) {
      this.#keep(pending);
      return Promise.resolve({ ...this.#unreachable(stream.cause), unsent: true });
    }
    if (this.#queue.length === 0) encoder.atTurnEnd(this.#flush);
    this.#queue.push(pending);
    return pending;
  }

  /** A reply could only come behind one that is late already: why. */
  get silence(): string | undefined {
    const oldest = this.#sent[0];
    if (!oldest?.isLate) return undefined;
    return `TIMEOUT: silent for ${Math.round(this.#settings.clock.monotonicMs() - oldest.sentAt)} ms`;
  }

  /** The connection is gone: what was on its way has an unknown outcome. */
  lost(cause: string): void {
    const sent = this.#sent;
    this.#sent = [];
    for (const batch of sent) this.#giveUp(batch, cause);
  }

  /** Sends pending releases, or the oldest so many; the node can be asked again. */
  resendReleases(atMost = Number.POSITIVE_INFINITY): void {
    // Their ballots are not needed; those whose outcome stays unknown are kept again.
    for (const { verb, question } of this.#settings.pendingReleases.take(atMost)) void this.ask(verb, question);
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

  #flushQueue(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (let start = 0; start < queue.length; ) {
      const end = endOfBatch(queue, start);
      const requests = (end - start === queue.length ? queue : queue.slice(start, end)) as unknown as Batch<PendingReply>;
      start = end;
      const { clock, stream } = this.#settings;
      const batch: SentBatch = { requests, sentAt: clock.monotonicMs(), admission: undefined, isLate: false };
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
    const { encoder, node, stream } = this.#settings;
    const call = encoder.encode(batch.requests);
    batch.admission = call.confirmsAdmission ? node.confirmedAdmission : undefined;
    stream.send(call, batch.admission).then((reply) => this.#answered(batch, reply), failed);
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
    const { node, pendingReleases } = this.#settings;
    if (!this.#settle(batch)) return;
    this.#lastHeardAt = this.#settings.clock.monotonicMs();
    const tookMs = this.#lastHeardAt - batch.sentAt;
    this.roundTripMs += (tookMs - this.roundTripMs) / (this.roundTripMs === 0 ? 1 : ROUND_TRIPS);
    if (tookMs < this.distanceMs) this.distanceMs = tookMs;
    let answer: ReturnType<typeof readCall>;
    try {
      answer = readCall(reply, batch.requests.length, batch.admission);
    } catch (error) {
      this.#giveUp(batch, causeOf(error));
      return;
    }
    const { admitted, replies } = answer;
    const term = admitted === undefined ? undefined : node.noteAdmission(admitted);
    const from: Answerer = { node: node.name, epoch: term?.epoch ?? "" };
    let index = 0;
    for (const pending of batch.requests) {
      const reply = replies[index++];
      if (typeof reply === "string") this.#keepRefused(pending);
      if (!batch.isLate) pending.resolve(this.#uncounted(pending, term) ?? this.#read(pending, from, reply));
    }
    if (pendingReleases.size > 0 && this.#refusedTimer === undefined) this.resendReleases(RELEASES_PER_REPLY);
  }

  /** A vote of another generation does not count: those members may have a quorum as well (M1). */
  #uncounted(pending: PendingReply, term: Term | undefined): Unreachable | undefined {
    if (term === undefined || term.generation === pending.generation) return undefined;
    return this.#unreachable(otherGeneration(term.generation, pending.generation));
  }

  #read({ verb, question }: PendingReply, from: Answerer, reply: unknown): Ballot {
    if (reply === null) return this.#settings.node.quarantined();
    if (typeof reply === "string") return this.#unreachable(causeOfText(reply));
    try {
      return verb.read(from, reply, question);
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
      this.#keep(pending);
      if (!batch.isLate) pending.resolve(ballot);
    }
  }

  #keep(request: Request): void {
    const { clock, pendingReleases } = this.#settings;
    pendingReleases.add(request, clock.monotonicMs());
  }

  #keepRefused(request: Request): void {
    const { clock, pendingReleases, stream } = this.#settings;
    if (!pendingReleases.addRefused(request, clock.monotonicMs())) return;
    this.#refusedTimer ??= clock.setBackgroundTimer(REFUSED_AGAIN_MS, () => {
      this.#refusedTimer = undefined;
      if (stream.isUp) this.resendReleases(RELEASES_PER_REPLY);
    });
  }

  #unreachable(cause: string): Unreachable {
    return { kind: "unreachable", node: this.#settings.node.name, cause };
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
export class PendingReply implements Request, Reply<Ballot> {
  readonly verb: AnyVerb;
  readonly question: Asked;
  /** The generation in which it was asked: an answer of another one does not count. */
  readonly generation: string;
  #ballot: Ballot | undefined;
  #callback: ((ballot: Ballot) => void) | undefined;

  constructor(verb: AnyVerb, question: Asked, generation: string) {
    this.verb = verb;
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

const MAX_PENDING = 10_000;

interface PendingRelease extends Request {
  readonly until: number;
}

/**
 * Requests that give back, and whose outcome is unknown, or that the node refused to execute: asked
 * while it could not be asked, or on their way when the connection was lost. They are sent when the
 * node is back, however late: a node that stood still executes what it had received when it goes on,
 * so a key may be younger than its release. Bounded: beyond the bound the time to live frees the
 * resource.
 */
export class PendingReleases {
  readonly #lifeMs: number;
  readonly #onDropped: (count: number, reason: string) => void;
  #releases: PendingRelease[] = [];
  /** By question. */
  readonly #refusedSince = new WeakMap<Asked, number>();
  #dropped = 0;
  /** How many there are. A field, since every reply reads it. */
  size = 0;

  /** `lifeMs`: after this long a release may make room for a new one. */
  constructor(lifeMs: number, onDropped: (count: number, reason: string) => void) {
    this.#lifeMs = lifeMs;
    this.#onDropped = onDropped;
  }

  /** Keeps what is to be asked again; of most verbs nothing is. */
  add({ verb, question: asked }: Request, now: number): void {
    const question = verb.again?.(asked);
    if (question === undefined) return;
    if (this.#releases.length >= MAX_PENDING) this.#dropOld(now);
    // The old ones are kept: their keys were there when the connection was lost, while later
    // acquisitions found no node to leave a key on.
    if (this.#releases.length >= MAX_PENDING) this.#dropped++;
    else this.#releases.push({ verb, question, until: now + this.#lifeMs });
    this.size = this.#releases.length;
  }

  /**
   * The node answers, so its keys run out: after the longest life of a key there is nothing to
   * release. False if nothing is ever kept of this.
   */
  addRefused({ verb, question: asked }: Request, now: number): boolean {
    const question = verb.again?.(asked);
    if (question === undefined) return false;
    const since = this.#refusedSince.get(question) ?? now;
    this.#refusedSince.set(question, since);
    if (now - since <= this.#lifeMs) this.add({ verb, question }, now);
    return true;
  }

  /** Removes and returns the oldest so many. */
  take(atMost = Number.POSITIVE_INFINITY): readonly Request[] {
    if (this.#dropped > 0) this.#onDropped(this.#dropped, `more than ${MAX_PENDING} were waiting for the node`);
    const due = this.#releases.slice(0, atMost);
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
