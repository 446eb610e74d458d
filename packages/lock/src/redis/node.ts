// One Redis master: requests in, ballots out. Joins the connection, the pipeline and the
// subscriptions of the node, and remembers what was last heard of it. The admission of the fleet
// may exclude it from voting.

import type { NodeSource } from "../options/node-source.js";
import { hasFailover } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import type {
  Ballot,
  ExtendBallot,
  GrantBallot,
  InspectBallot,
  Quarantined,
  RaiseBallot,
  ReleaseBallot,
  SealBallot,
  Unreachable,
} from "../protocol/ballot.js";
import type { NodeEvent } from "../protocol/events.js";
import type { ExtendQuestion, GrantQuestion, LockNode, ReleaseListener, ReleaseQuestion, Reply } from "../protocol/node.js";
import { incarnationIn } from "./admission-record.js";
import type { BatchEncoder } from "./batch.js";
import { Connection } from "./connection.js";
import type { Keys } from "./keys.js";
import type { OpenLink } from "./link.js";
import { isAdmitted, type NodeStatus } from "./node-record.js";
import { PendingReleases } from "./pending-releases.js";
import { Pipeline } from "./pipeline.js";
import type { NotAdmitted } from "./pipeline-settings.js";
import * as requests from "./requests.js";
import { Subscriptions } from "./subscriptions.js";

export interface RedisNodeSettings {
  readonly name: string;
  readonly address: string;
  readonly source: NodeSource;
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
  /** The node was reached (again), or it answered that it is not admitted. */
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
  /** The admission record as last heard, and the incarnation in it. */
  #record: string | undefined;
  #incarnation: string | undefined;
  #status: NodeStatus | undefined;
  #isQuarantined = false;
  #readyAt: number | undefined;
  /** Why this locker must not use the fleet. */
  #exclusion: string | undefined;
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
      node: name,
      stream: this.connection,
      pendingReleases,
      record: () => this.#record,
      onRecord: (record) => this.#noteRecord(record),
    });
    this.#subscriptions = new Subscriptions({
      ...settings,
      connectionName: `${settings.connectionName}:waiting`,
    });
  }

  incarnation(): string | undefined {
    return this.#incarnation;
  }

  /** As last read. */
  get status(): NodeStatus | undefined {
    return this.#status;
  }

  get isQuarantined(): boolean {
    return this.#isQuarantined;
  }

  /** Another server may answer at the address without a restart. */
  get hasFailover(): boolean {
    return hasFailover(this.#settings.source);
  }

  get subscriptionTrouble(): string | undefined {
    return this.#subscriptions.trouble;
  }

  /** In how many milliseconds it can be admitted, where known. */
  get readyInMs(): number | undefined {
    return this.#readyAt === undefined ? undefined : Math.max(0, Math.ceil(this.#readyAt - this.#settings.clock.monotonicMs()));
  }

  /** Called by the admission with what it has just read of this node. */
  noteStatus(status: NodeStatus): void {
    this.#status = status;
    if (isAdmitted(status)) this.#noteRecord(status.admitted);
    else this.#notAdmitted();
  }

  noteReadyIn(ms: number | undefined): void {
    this.#readyAt = ms === undefined ? undefined : this.#settings.clock.monotonicMs() + ms;
  }

  /**
   * From now on every request but a release is answered with `unreachable` and this cause;
   * undefined lets it vote again.
   */
  exclude(cause: string | undefined): void {
    this.#exclusion = cause;
  }

  grant(question: GrantQuestion): Reply<GrantBallot> {
    return this.#ask(requests.grant, question);
  }

  seal(question: requests.SealQuestion): Reply<SealBallot> {
    return this.#ask(requests.seal, question);
  }

  extend(question: ExtendQuestion): Reply<ExtendBallot> {
    return this.#ask(requests.extend, question);
  }

  heal(question: requests.HealQuestion): Reply<ExtendBallot> {
    return this.#ask(requests.heal, question);
  }

  release(question: ReleaseQuestion): Reply<ReleaseBallot> {
    // A quarantined node executes a release too, and never answers it with `quarantined`.
    return this.#pipeline.ask(requests.release, question) as Reply<ReleaseBallot>;
  }

  inspect(resource: string): Reply<InspectBallot> {
    return this.#ask(requests.inspect, resource);
  }

  raise(question: requests.RaiseQuestion): Reply<RaiseBallot> {
    return this.#ask(requests.raise, question);
  }

  onReleased(resource: string, wakeSlot: number, listener: ReleaseListener): () => void {
    return this.#subscriptions.add(resource, wakeSlot, listener);
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

  #ask<Q, B extends Ballot>(kind: requests.RequestKind<Q, B>, question: Q): Reply<B | Quarantined | Unreachable> {
    if (this.#exclusion !== undefined)
      return Promise.resolve({ kind: "unreachable", node: this.name, cause: this.#exclusion, unsent: true });
    const reply = this.#pipeline.ask(kind, question);
    // Rarely true: the ordinary request is spared a promise.
    return this.#isQuarantined ? new Promise((resolve) => reply.then((ballot) => resolve(this.#withReadyIn(ballot)))) : reply;
  }

  #withReadyIn<B extends Ballot>(ballot: B | NotAdmitted | Unreachable): B | Quarantined | Unreachable {
    const readyInMs = this.readyInMs;
    return ballot.kind === "quarantined" && readyInMs !== undefined ? { ...ballot, readyInMs } : ballot;
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

  #noteRecord(record: string): string {
    if (record === this.#record) return this.#incarnation ?? "";
    const incarnation = incarnationIn(record);
    if (incarnation === "") {
      this.#notAdmitted();
      return "";
    }
    this.#record = record;
    this.#incarnation = incarnation;
    this.#isQuarantined = false;
    return incarnation;
  }

  #notAdmitted(): void {
    if (this.#isQuarantined) return;
    this.#isQuarantined = true;
    this.#record = undefined;
    this.#incarnation = undefined;
    this.#readyAt = undefined;
    this.#settings.onEvent({ kind: "quarantined", node: this.name });
    this.#settings.onNews();
  }
}
