// One Redis master: questions in, ballots out. Joins the connection, the pipeline and the inbox of the
// node, and remembers what was last heard of it: whether it is admitted, in which generation it
// votes, what it answers in quarantine. The admission of the fleet may exclude it from voting. Below
// the node: the inbox in which it tells this process of releases.
import type { Clock } from "../platform/clock.js";
import type { Ballot, Quarantined } from "../protocol/ballot.js";
import type { NodeEvent } from "../protocol/events.js";
import type { LockNode, ReleaseListener, Reply, ServerSource } from "../protocol/node.js";
import { type AnyVerb, type Asked, type BallotOf, type Keys, type QuestionOf, type Verb, verbs } from "../protocol/verbs.js";
import type { BatchEncoder } from "./calls.js";
import { Connection, type ConnectSettings, causeOf, type Link, type OpenLink } from "./connection.js";
import { PendingReleases, Pipeline } from "./pipeline.js";
import { epochIn, generationIn, isAdmitted, type NodeStatus, type Term } from "./record.js";

export interface RedisNodeSettings {
  readonly name: string;
  readonly address: string;
  readonly source: ServerSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
  /** One for all nodes of the fleet. */
  readonly encoder: BatchEncoder;
  readonly clock: Clock;
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly maxTtlMs: number;
  readonly retentionMs: number;
  readonly connectionName: string;
  /** Must not throw: it is called before pending requests and releases are dealt with. */
  readonly onEvent: (event: NodeEvent) => void;
  /** The generation whose votes this locker counts; empty while no member is known. */
  readonly votingIn: { readonly generation: string };
  /**
   * The node was reached (again), or it answered that it is not admitted or in which generation.
   */
  readonly onNews: () => void;
}

const CLOSE_POLL_MS = 1;

export class RedisNode implements LockNode {
  readonly name: string;
  readonly address: string;
  readonly connection: Connection;
  readonly #settings: RedisNodeSettings;
  readonly #pipeline: Pipeline;
  readonly #subscriptions: Subscriptions;
  #confirmedAdmission: string | undefined;
  /** In what it votes, as the field admitted says. */
  #term: Term | undefined;
  /** The id of the member that was once found here: it stays when the memory is lost. Set by RedisFleet. */
  memberId: string | undefined;
  /** As last read: on each connection, and by each look of the admission (`noteStatus`). */
  status: NodeStatus | undefined;
  #isQuarantined = false;
  #readyAt: number | undefined;
  #seenFirst: { readonly nonce: string; readonly atMs: number } | undefined;
  /**
   * Why nothing can be done for it. Set by Admission, and where the node refuses a step; cleared here
   * when it is admitted. That of the fleet is why nothing can be done for all that do not vote.
   */
  blockedBecause: string | undefined;
  /**
   * Why another server answers in its place, or this locker must not use the fleet: then every request
   * but those that give back is answered with `unreachable` and this cause. Set by RedisFleet.
   */
  exclusion: string | undefined;
  /** The cause last reported: a node that stays away is reported once. */
  #reportedCause: string | undefined;

  constructor(settings: RedisNodeSettings) {
    const { name, address, onEvent } = settings;
    this.#settings = settings;
    this.name = name;
    this.address = address;
    const pendingReleases = new PendingReleases(settings.maxTtlMs, (count, reason) =>
      onEvent({ kind: "release_dropped", node: name, count, reason }),
    );
    this.connection = new Connection({
      ...settings,
      onUp: (status) => this.#up(status),
      onDown: (cause) => this.#down(cause),
    });
    this.#pipeline = new Pipeline({
      ...settings,
      node: this,
      stream: this.connection,
      pendingReleases,
    });
    this.#subscriptions = new Subscriptions({
      ...settings,
      connectionName: `${settings.connectionName}:waiting`,
    });
  }

  epoch(): string | undefined {
    const term = this.#term;
    return term === undefined || term.generation !== this.#settings.votingIn.generation ? undefined : term.epoch;
  }

  /** It is admitted, and votes in the generation that this locker counts. */
  get isVoter(): boolean {
    return this.exclusion === undefined && !this.#isQuarantined && this.#term?.generation === this.#settings.votingIn.generation;
  }

  get isQuarantined(): boolean {
    return this.#isQuarantined;
  }

  get subscriptionTrouble(): string | undefined {
    return this.#subscriptions.trouble;
  }

  get isExcluded(): boolean {
    return this.exclusion !== undefined;
  }

  /** In how many milliseconds it can be admitted, where known. */
  get readyInMs(): number | undefined {
    return this.#readyAt === undefined ? undefined : Math.max(0, Math.ceil(this.#readyAt - this.#settings.clock.monotonicMs()));
  }

  /**
   * The confirmed admission: the field admitted (record.ts) as last heard from this node, while it votes.
   * A grant of one resource takes it along; if the node's is still the same, it answers with the
   * token alone, which is sooner written and read (grant.lua).
   */
  get confirmedAdmission(): string | undefined {
    return this.#confirmedAdmission;
  }

  /** The field admitted, as the node has just told it; empty where it is not admitted. */
  noteAdmission(admitted: string): Term | undefined {
    if (admitted === this.#confirmedAdmission && this.#term !== undefined) return this.#term;
    const epoch = epochIn(admitted);
    if (epoch === "") {
      this.#notAdmitted();
      return undefined;
    }
    this.#confirmedAdmission = admitted;
    this.#term = { epoch, generation: generationIn(epoch) };
    this.#isQuarantined = false;
    this.blockedBecause = undefined;
    if (this.#term.generation !== this.#settings.votingIn.generation) this.#settings.onNews();
    return this.#term;
  }

  /** What it answers while it is not admitted. */
  quarantined(): Quarantined {
    const { readyInMs, blockedBecause: reason } = this;
    return {
      kind: "quarantined",
      node: this.name,
      ...(readyInMs === undefined ? {} : { readyInMs }),
      ...(reason === undefined ? {} : { reason }),
    };
  }

  /** Called by the admission with what it has just read of this node. */
  noteStatus(status: NodeStatus): void {
    this.status = status;
    this.noteAdmission(isAdmitted(status) ? status.admitted : "");
  }

  /**
   * For how long this locker has seen this open admission, by its own monotonic clock: a node whose
   * wall clock was ahead when it was opened, and was set back, counts from zero for so long.
   */
  seenForMs(nonce: string): number {
    const now = this.#settings.clock.monotonicMs();
    if (this.#seenFirst?.nonce !== nonce) this.#seenFirst = { nonce, atMs: now };
    return now - this.#seenFirst.atMs;
  }

  noteReadyIn(ms: number | undefined): void {
    this.#readyAt = ms === undefined ? undefined : this.#settings.clock.monotonicMs() + ms;
  }

  ask<V extends Verb>(verb: V, question: QuestionOf<V>): Reply<BallotOf<V>>;
  ask(name: Verb, question: Asked): Reply<Ballot> {
    const verb = verbs[name] as AnyVerb;
    // What gives back is sent in any case, behind what may have been granted.
    const cause = verb.needs === "nothing" ? undefined : (this.exclusion ?? this.#pipeline.silence);
    if (cause !== undefined) return Promise.resolve({ kind: "unreachable", node: this.name, cause, unsent: true });
    return this.#pipeline.ask(verb, question);
  }

  onReleased(ticket: string, listener: ReleaseListener): () => void {
    return this.#subscriptions.add(ticket, listener);
  }

  listenAnew(): void {
    this.#subscriptions.again();
  }

  get roundTripMs(): number {
    return this.#pipeline.roundTripMs;
  }

  get distanceMs(): number {
    return this.#pipeline.distanceMs;
  }

  met(): Promise<void> {
    return this.connection.met;
  }

  /** Waits, no longer than a request may take, for what is on its way: the last releases. */
  async close(): Promise<void> {
    const { clock, nodeTimeoutMs } = this.#settings;
    const until = clock.monotonicMs() + nodeTimeoutMs;
    while (!this.#pipeline.isIdle && clock.monotonicMs() < until) {
      await new Promise<void>((resolve) => clock.setTimer(CLOSE_POLL_MS, resolve));
    }
    this.#pipeline.close();
    this.#subscriptions.close();
    this.connection.close();
  }

  #up(status: NodeStatus): void {
    this.#reportedCause = undefined;
    this.#settings.onEvent({ kind: "connected", node: this.name, address: this.address });
    this.noteStatus(status);
    this.#settings.onNews();
    this.#pipeline.resendReleases();
  }

  #down(cause: string): void {
    if (cause !== this.#reportedCause) this.#settings.onEvent({ kind: "disconnected", node: this.name, address: this.address, cause });
    this.#reportedCause = cause;
    this.#pipeline.lost(cause);
  }

  #notAdmitted(): void {
    if (this.#isQuarantined) return;
    this.#isQuarantined = true;
    this.#confirmedAdmission = undefined;
    this.#term = undefined;
    this.#readyAt = undefined;
    this.#settings.onEvent({ kind: "quarantined", node: this.name });
    this.#settings.onNews();
  }
}

/** What a node tells: for how long it is reserved for another, when the ticket asked last, its word (queue.lua). */
const MESSAGE = /^(\d+) (\d+)(:.*)$/;

interface SubscriptionSettings extends ConnectSettings {
  readonly source: ServerSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
}

/**
 * Receives what one node tells this process of the resources that it waits for: in one inbox, on a
 * connection of its own that is opened for the first waiter and kept. Best effort: a waiter also
 * wakes when the time to live is over, so nothing here fails a caller.
 */
export class Subscriptions {
  readonly #settings: SubscriptionSettings;
  readonly #listeners = new Map<string, Set<ReleaseListener>>();
  #client: Link | undefined;
  #isReady = false;
  #isAsked = false;
  /** The node confirmed the inbox on the connection that is open now. */
  #isHeard = false;
  #isClosed = false;
  /** Why nothing is heard, for the doctor. */
  trouble: string | undefined;

  constructor(settings: SubscriptionSettings) {
    this.#settings = settings;
  }

  /** What the ticket is told, until the returned function is called. */
  add(ticket: string, listener: ReleaseListener): () => void {
    if (this.#isClosed) return () => {};
    this.#client ??= this.#open();
    const listeners = this.#listeners.get(ticket) ?? new Set();
    this.#listeners.set(ticket, listeners.add(listener));
    if (this.#isHeard) listener.listening();
    else this.#subscribe();
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(ticket) === listeners) this.#listeners.delete(ticket);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#lost();
    this.#listeners.clear();
    this.#client?.disconnect();
  }

  #open(): Link {
    const client = this.#settings.openLink(this.#settings.source, this.#settings);
    client.on("error", (error: unknown) => {
      this.trouble = causeOf(error);
    });
    client.on("ready", () => {
      this.#isReady = true;
      this.trouble = undefined;
      this.#subscribe();
    });
    client.on("close", () => {
      if (this.#client === client) this.#lost();
    });
    client.on("message", (message: string) => this.#told(message));
    client.connect().catch((error: unknown) => {
      this.trouble = causeOf(error);
    });
    return client;
  }

  /** Again for every new waiter where the server refused it: a right may have been given since. */
  #subscribe(): void {
    if (!this.#isReady || this.#isAsked) return;
    this.#isAsked = true;
    this.#client?.subscribe(this.#settings.keys.inboxChannel).then(
      () => {
        if (!this.#isReady) return;
        this.#isHeard = true;
        for (const listener of this.#everyone()) listener.listening();
      },
      (error: unknown) => {
        this.#isAsked = false;
        this.trouble = causeOf(error);
      },
    );
  }

  #lost(): void {
    const wasHeard = this.#isHeard;
    this.#isReady = false;
    this.#isAsked = false;
    this.#isHeard = false;
    if (wasHeard) for (const listener of this.#everyone()) listener.deaf();
  }

  /** Replaces a connection that is open and dead. */
  again(): void {
    if (this.#isClosed || !this.#isHeard) return;
    this.#lost();
    this.#client?.disconnect();
    this.#client = this.#open();
  }

  // Any client may publish on the channel: other messages are ignored.
  #told(message: string): void {
    const [, otherMs, askedAtMs, ticket = ""] = MESSAGE.exec(message) ?? [];
    for (const listener of [...(this.#listeners.get(ticket) ?? [])]) listener.released(Number(otherMs), Number(askedAtMs));
  }

  #everyone(): readonly ReleaseListener[] {
    return [...this.#listeners.values()].flatMap((listeners) => [...listeners]);
  }
}
