// One Redis master as the control flow sees it: questions in, ballots out. Joins the connection, the outbox and the subscriptions of the node, and remembers what
// was last heard of it. Decides nothing about other nodes: that is admission.ts, which may tell this one to keep silent.

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
import type { Answer, GrantQuestion, LockNode, ReleaseListener, ReleaseQuestion } from "../protocol/node.js";
import { incarnationIn } from "./admission-record.js";
import { Connection } from "./connection.js";
import type { CallEncoder } from "./encoded-call.js";
import type { Keys } from "./keys.js";
import type { OpenLink } from "./link.js";
import { isAdmitted, type NodeStatus } from "./node-record.js";
import { PendingReleases } from "./pending-releases.js";
import { type NotAdmitted, Pipeline } from "./pipeline.js";
import * as requests from "./requests.js";
import { Subscriptions } from "./subscriptions.js";
import type { TurnEnd } from "./turn-end.js";

export interface RedisNodeSettings {
  readonly name: string;
  readonly address: string;
  readonly source: NodeSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
  /** One for all nodes of the fleet. */
  readonly encoder: CallEncoder;
  readonly turnEnd: TurnEnd;
  readonly clock: Clock;
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly maxTtlMs: number;
  readonly retentionMs: number;
  readonly connectionName: string;
  readonly onEvent: (event: NodeEvent) => void;
  /** The node was met (again), or it said that it does not believe its memory. */
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
  /** As last heard: the field `admitted` of its record. */
  #belief: string | undefined;
  #epoch: string | undefined;
  #status: NodeStatus | undefined;
  #isQuarantined = false;
  #readyAt: number | undefined;
  /** Why the fleet does not let this locker vote. */
  #silence: string | undefined;
  /** What was last reported: a node that stays away is reported once. */
  #downBecause: string | undefined;

  constructor(settings: RedisNodeSettings) {
    const { name, address, onEvent } = settings;
    this.#settings = settings;
    this.name = name;
    this.address = address;
    const pendingReleases = new PendingReleases(settings.maxTtlMs, (count, reason) =>
      onEvent({ kind: "release_dropped", node: name, count, reason }),
    );
    this.connection = new Connection({ ...settings, onUp: (status) => this.#up(status), onDown: (cause) => this.#down(cause) });
    this.#pipeline = new Pipeline({
      ...settings,
      node: name,
      stream: this.connection,
      pendingReleases,
      belief: () => this.#belief,
      onHeard: (belief) => this.#heard(belief),
    });
    this.#subscriptions = new Subscriptions({ ...settings, connectionName: `${settings.connectionName}:waiting` });
  }

  epoch(): string | undefined {
    return this.#epoch;
  }

  /** As of the last look. */
  get status(): NodeStatus | undefined {
    return this.#status;
  }

  get isQuarantined(): boolean {
    return this.#isQuarantined;
  }

  /** What stands behind the address may change without a restart. */
  get hasFailover(): boolean {
    return hasFailover(this.#settings.source);
  }

  get subscriptionTrouble(): string | undefined {
    return this.#subscriptions.trouble;
  }

  /** When it can be admitted, on the monotonic clock, where known. */
  get readyInMs(): number | undefined {
    return this.#readyAt === undefined ? undefined : Math.max(0, Math.ceil(this.#readyAt - this.#settings.clock.monotonicMs()));
  }

  /** What the admission has just learned of this node. */
  noteStatus(status: NodeStatus): void {
    this.#status = status;
    if (isAdmitted(status)) this.#heard(status.admitted);
    else this.#notAdmitted();
  }

  noteReadyIn(ms: number | undefined): void {
    this.#readyAt = ms === undefined ? undefined : this.#settings.clock.monotonicMs() + ms;
  }

  /** From now on every question but a release is answered with this; undefined lets it vote again. */
  keepSilent(because: string | undefined): void {
    this.#silence = because;
  }

  grant(question: GrantQuestion): Answer<GrantBallot> {
    return this.#ask(requests.grant, question);
  }

  seal(question: requests.SealQuestion): Answer<SealBallot> {
    return this.#ask(requests.seal, question);
  }

  extend(question: requests.ExtendQuestion): Answer<ExtendBallot> {
    return this.#ask(requests.extend, question);
  }

  heal(question: requests.HealQuestion): Answer<ExtendBallot> {
    return this.#ask(requests.heal, question);
  }

  release(question: ReleaseQuestion): Answer<ReleaseBallot> {
    // A release is answered on a quarantined node too, and is never `quarantined`.
    return this.#pipeline.ask(requests.release, question) as Answer<ReleaseBallot>;
  }

  inspect(resource: string): Answer<InspectBallot> {
    return this.#ask(requests.inspect, resource);
  }

  raise(question: requests.RaiseQuestion): Answer<RaiseBallot> {
    return this.#ask(requests.raise, question);
  }

  onReleased(resource: string, seat: number, listener: ReleaseListener): () => void {
    return this.#subscriptions.add(resource, seat, listener);
  }

  met(): Promise<void> {
    return this.connection.met;
  }

  /** Waits, no longer than a question may take, for what is on its way: the last releases. */
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

  #ask<Q, B extends Ballot>(kind: requests.RequestKind<Q, B>, question: Q): Answer<B | Quarantined | Unreachable> {
    if (this.#silence !== undefined) return Promise.resolve({ kind: "unreachable", node: this.name, cause: this.#silence, unsent: true });
    const asked = this.#pipeline.ask(kind, question);
    // Almost never so: a promise less for every question.
    return this.#isQuarantined ? new Promise((resolve) => asked.then((ballot) => resolve(this.#withReadyIn(ballot)))) : asked;
  }

  #withReadyIn<B extends Ballot>(ballot: B | NotAdmitted | Unreachable): B | Quarantined | Unreachable {
    const readyInMs = this.readyInMs;
    return ballot.kind === "quarantined" && readyInMs !== undefined ? { ...ballot, readyInMs } : ballot;
  }

  #up(status: NodeStatus): void {
    this.#downBecause = undefined;
    this.#settings.onEvent({ kind: "connected", node: this.name, address: this.address });
    this.noteStatus(status);
    this.#settings.onNews();
    this.#pipeline.resendReleases();
  }

  #down(cause: string): void {
    if (cause !== this.#downBecause) this.#settings.onEvent({ kind: "disconnected", node: this.name, address: this.address, cause });
    this.#downBecause = cause;
    this.#pipeline.lost(cause);
  }

  #heard(belief: string): void {
    if (belief === this.#belief) return;
    const epoch = incarnationIn(belief);
    if (epoch === "") {
      this.#notAdmitted();
      return;
    }
    this.#belief = belief;
    this.#epoch = epoch;
    this.#isQuarantined = false;
  }

  #notAdmitted(): void {
    if (this.#isQuarantined) return;
    this.#isQuarantined = true;
    this.#belief = undefined;
    this.#epoch = undefined;
    this.#readyAt = undefined;
    this.#settings.onEvent({ kind: "quarantined", node: this.name });
    this.#settings.onNews();
  }
}
