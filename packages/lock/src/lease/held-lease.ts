// Keeps one lease: its deadline by two clocks, its renewals, its end. Ten thousand of these live in
// one process, so there is no timer, no AbortController and no closure per lease until the holder
// asks for one.

import { shown } from "../options/option.js";
import { checkTtl, type LeaseRequest } from "../options/policy.js";
import type { Deadline } from "../platform/deadline-heap.js";
import { type Ballot, type LeaseLostReason, LockError } from "../protocol/ballot.js";
import { channels, type EndEvent, type OpenSpan, type RenewalEvent, tracing } from "../protocol/events.js";
import type { Lease, Release, Renewal } from "../protocol/locker.js";
import { castBallots, neededTtlMs, remainingMs, validityMs } from "../quorum.js";
import { describeLoss } from "./messages.js";
import { releaseEverywhere } from "./release.js";
import { renew } from "./renew.js";
import type { LockerState, Won } from "./state.js";

/** The part of the validity after which the holder is warned. */
const DANGER = 0.75;

export class HeldLease implements Lease, Deadline {
  dueAt = 0;
  heapIndex = -1;
  readonly resources: readonly string[];
  readonly token: number;
  readonly #locker: LockerState;
  readonly #owner: string;
  readonly #label: string;
  readonly #ticket: string | undefined;
  readonly #grants: readonly (Ballot | undefined)[];
  readonly #grantedAt: number;
  readonly #holdUntilAt: number;
  readonly #span: OpenSpan | undefined;
  // The deadline: the moment before the first byte of the last successful round was sent, and how
  // long the lease lasts from then on.
  #startMonotonicMs: number;
  #startWallMs: number;
  #lastsMs: number;
  #ttlMs: number;
  /** The members that granted or renewed it last. */
  #nodes: LockerState["nodes"];
  #renews: boolean;
  #renewAt = Number.POSITIVE_INFINITY;
  #isWarned = false;
  #unknowns = 0;
  /** How often the nodes were asked to hold it longer. */
  #extensions = 0;
  /** Why it will have been lost, should its time run out. */
  #trouble: LeaseLostReason = "expired";
  #ended: LeaseLostReason | undefined;
  #controller: AbortController | undefined;
  #dangerListeners: Set<(remainingMs: number) => void> | undefined;
  #extending: Promise<Renewal> | undefined;
  #release: Promise<Release> | undefined;

  constructor(locker: LockerState, grant: Won, keeping: Pick<LeaseRequest, "label" | "renew" | "maxHoldMs">) {
    this.#locker = locker;
    this.resources = grant.resources;
    this.token = grant.token;
    this.#owner = grant.owner;
    this.#label = keeping.label;
    this.#ticket = grant.ticket;
    this.#ttlMs = grant.ttlMs;
    this.#grants = grant.ballots;
    this.#nodes = grant.nodes;
    this.#startMonotonicMs = grant.startMonotonicMs;
    this.#startWallMs = grant.startWallMs;
    this.#grantedAt = grant.startMonotonicMs;
    this.#holdUntilAt = grant.startMonotonicMs + keeping.maxHoldMs;
    this.#lastsMs = this.#validityFrom(grant.startMonotonicMs);
    this.#renews = keeping.renew;
    if (keeping.renew) this.#planRenewal(renewInMs(this.#lastsMs, locker.clock.random()));
    this.#setDeadline();
    this.#span = tracing.spans?.begin("hold", this);
  }

  get resource(): string {
    return this.resources[0] ?? "";
  }

  get ballots(): readonly Ballot[] {
    return castBallots(this.#grants);
  }

  get held(): boolean {
    return !this.#endIfOver();
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#endIfOver()) this.#controller.abort(this.#lost());
    }
    return this.#controller.signal;
  }

  remainingMs(): number {
    return this.#endIfOver() ? 0 : this.#leftMs();
  }

  assertHeld(): void {
    if (this.#endIfOver()) throw this.#lost();
  }

  /** After a routine's work: it counts if the lease is held, or was released by the routine. */
  assertLasted(): void {
    if (this.#ended !== "released") this.assertHeld();
  }

  async extend(ttlMs?: number): Promise<Renewal> {
    if (ttlMs !== undefined) {
      checkTtl(this.#locker.policy, ttlMs);
      this.#locker.checkTtl(ttlMs);
    }
    // One at a time: of two answers that overtake each other, the older one would tell of a ttl
    // that the nodes do not have any more.
    while (this.#extending !== undefined) await this.#extending.then(ignored, ignored);
    this.assertHeld();
    if (ttlMs !== undefined) this.#ttlMs = ttlMs;
    this.#extending = this.#extend();
    try {
      return await this.#extending;
    } finally {
      this.#extending = undefined;
    }
  }

  release(): Promise<Release> {
    this.#end("released");
    return this.#giveBack();
  }

  onDanger(listener: (remainingMs: number) => void): () => void {
    // Checked now: when the lease is in danger, the caller's mistake would surface too late.
    if (typeof listener !== "function") throw new TypeError(`onDanger needs a function to call, not ${shown(listener)}`);
    this.#dangerListeners ??= new Set();
    this.#dangerListeners.add(listener);
    return () => this.#dangerListeners?.delete(listener);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  /** The locker is closed. */
  async close(): Promise<void> {
    this.#end("closed");
    await this.#giveBack();
  }

  /** The end is due, or the warning before it, or a renewal. */
  onDue(): void {
    if (this.#endIfOver()) return;
    if (!this.#isWarned && this.#leftMs() <= this.#lastsMs * (1 - DANGER) + 1) this.#warn();
    const now = this.#locker.clock.monotonicMs();
    if (now + 1 >= this.#renewAt && this.#isWorthRenewing(now)) {
      this.#renewAt = Number.POSITIVE_INFINITY;
      // The outcome is in the lease's state and in the events: a lease that was lost has aborted
      // its signal by the time this settles.
      this.extend().then(ignored, ignored);
    }
    if (this.#ended === undefined) this.#setDeadline();
  }

  async #extend(): Promise<Renewal> {
    const { clock, policy, nodes } = this.#locker;
    const extension = ++this.#extensions;
    const span = tracing.spans?.begin("renew", this, this.#span);
    // A node that loses its memory waits only for as long as a lease may last now.
    this.#ttlMs = Math.min(this.#ttlMs, this.#locker.fleet.maxTtlMs ?? this.#ttlMs);
    const startMonotonicMs = clock.monotonicMs();
    const startWallMs = clock.wallMs();
    const lastsMs = this.#validityFrom(startMonotonicMs);
    // A shorter ttl counts at once: the nodes may hold it for less from now on, whether or not
    // their answers arrive, and nobody else may hold it while it counts here (L2).
    if (lastsMs < this.#leftMs()) this.#restart(startMonotonicMs, startWallMs, lastsMs);
    const { verdict, ballots } = await renew(this.#locker, {
      resources: this.resources,
      owner: this.#owner,
      label: this.#label,
      token: this.token,
      ttlMs: Math.min(this.#ttlMs, Math.ceil(neededTtlMs(lastsMs, policy.driftFactor))),
      plantMs: this.#nodes === nodes ? 0 : Math.floor(neededTtlMs(this.#leftMs(), policy.driftFactor)),
      isWanted: () => this.#ended === undefined && this.#extensions === extension,
    });
    if (verdict === "renewed") {
      this.#trouble = "expired";
      this.#unknowns = 0;
      this.#isWarned = false;
      this.#nodes = nodes;
      if (this.#ended === undefined) this.#restart(startMonotonicMs, startWallMs, lastsMs);
      this.#planRenewal(renewInMs(lastsMs, clock.random()));
    } else if (verdict === "lost") {
      this.#end("taken");
    } else {
      this.#trouble = ballots.some((ballot) => ballot.kind === "quarantined") ? "quarantined" : "unreachable";
      this.#planRenewal(renewAgainInMs(this.#lastsMs, ++this.#unknowns, clock.random()));
    }
    const isOver = this.#endIfOver();
    publishRenewal(this, { outcome: verdict, remainingMs: isOver ? 0 : this.#leftMs(), ballots }, span);
    if (isOver || verdict === "lost") throw this.#lost(ballots);
    this.#setDeadline();
    return { outcome: verdict, remainingMs: this.#leftMs(), ballots };
  }

  /** How long a grant of the present ttl lasts from this moment on, within maxHoldMs. */
  #validityFrom(monotonicMs: number): number {
    return Math.min(validityMs(this.#ttlMs, this.#locker.policy.driftFactor), this.#holdUntilAt - monotonicMs);
  }

  #restart(startMonotonicMs: number, startWallMs: number, lastsMs: number): void {
    this.#startMonotonicMs = startMonotonicMs;
    this.#startWallMs = startWallMs;
    this.#lastsMs = lastsMs;
  }

  #leftMs(): number {
    const { clock } = this.#locker;
    return remainingMs(this.#lastsMs, clock.monotonicMs() - this.#startMonotonicMs, clock.wallMs() - this.#startWallMs);
  }

  #planRenewal(inMs: number): void {
    this.#renewAt = onGrid(this.#locker.clock.monotonicMs(), inMs, this.#ttlMs);
  }

  #setDeadline(): void {
    const leftMs = this.#leftMs();
    const now = this.#locker.clock.monotonicMs();
    let at = now + leftMs;
    if (!this.#isWarned) at = Math.min(at, at - this.#lastsMs * (1 - DANGER));
    if (this.#isWorthRenewing(now)) at = Math.min(at, this.#renewAt);
    this.#locker.deadlines.set(this, at);
  }

  // Not where maxHoldMs ends it. Few milliseconds do not count: the wall clock has whole ones.
  #isWorthRenewing(now: number): boolean {
    return this.#renews && now + this.#leftMs() < this.#holdUntilAt - MIN_RENEWAL_DELAY_MS;
  }

  #warn(): void {
    this.#isWarned = true;
    const leftMs = this.#leftMs();
    if (channels.danger.hasSubscribers) channels.danger.publish({ resources: this.resources, token: this.token, remainingMs: leftMs });
    for (const listener of this.#dangerListeners ?? []) {
      // In a microtask: what a listener throws must not keep other leases from their deadlines.
      queueMicrotask(() => listener(leftMs));
    }
  }

  #endIfOver(): boolean {
    if (this.#ended !== undefined) return true;
    if (this.#leftMs() > 0) return false;
    this.#end(this.#trouble);
    return true;
  }

  #end(reason: LeaseLostReason): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    const { clock, deadlines } = this.#locker;
    deadlines.clear(this);
    this.#controller?.abort(this.#lost());
    publishEnd(this, { reason, heldMs: clock.monotonicMs() - this.#grantedAt }, this.#span);
    // An extension without an answer in time may have been executed, or be on its way: nodes would
    // hold for a whole ttl what has ended here.
    if (reason === "taken" || this.#extensions > 0) void this.#giveBack();
  }

  #giveBack(): Promise<Release> {
    const grants = this.#extensions === 0 && this.#nodes === this.#locker.nodes ? this.#grants : undefined;
    const { resources, token } = this;
    this.#release ??= releaseEverywhere(this.#locker, { resources, owner: this.#owner, token, ticket: this.#ticket, grants }, this.#span);
    return this.#release;
  }

  #lost(ballots: readonly Ballot[] = []): LockError {
    const reason = this.#ended ?? this.#trouble;
    return new LockError("LEASE_LOST", describeLoss(this, reason, this.#lastsMs), { resources: this.resources, ballots, reason });
  }
}

// The caller that asked for the extension gets its outcome; waiting for its end needs none.
function ignored(): void {}

interface Told {
  readonly resources: readonly string[];
  readonly token: number;
}

function publishRenewal(lease: Told, event: Omit<RenewalEvent, keyof Told>, span: OpenSpan | undefined): void {
  const { resources, token } = lease;
  span?.end({ outcome: event.outcome, isFailure: event.outcome !== "renewed" });
  if (channels.renewal.hasSubscribers) channels.renewal.publish({ resources, token, ...event });
}

function publishEnd({ resources, token }: Told, { reason, heldMs }: Pick<EndEvent, "reason" | "heldMs">, span: OpenSpan | undefined): void {
  span?.end({ outcome: reason, isFailure: reason !== "released" && reason !== "closed" });
  if (reason !== "released" && channels.loss.hasSubscribers) channels.loss.publish({ resources, token, reason });
  if (channels.end.hasSubscribers) channels.end.publish({ resources, token, reason, heldMs });
}

// When a lease is renewed. Chance comes in as a number from 0 to 1.

/**
 * Renewed before a third of the ttl is over. Spread widely: ten thousand leases taken at once are
 * more than a node can renew at once.
 */
const RENEW_FROM = 0.15;
const RENEW_TO = 0.36;
/**
 * After an unknown answer it is renewed again after about this part of the ttl, and after twice as
 * long each further time, up to a bound.
 */
const RETRY_FIRST = 0.02;
const RETRY_LAST = 0.1;
/** No renewal sooner than this: a short ttl must not become a busy loop. */
const MIN_RENEWAL_DELAY_MS = 5;
/**
 * Renewals are due at multiples of this part of the ttl, so that those due at about the same time
 * are sent in the same turn and share one script call per node.
 */
const GRID = 0.002;
const WIDEST_GRID_MS = 50;

/** The delay before the next renewal of a lease that lasts so long. */
export function renewInMs(lastsMs: number, chance: number): number {
  return lastsMs * (RENEW_FROM + (RENEW_TO - RENEW_FROM) * chance);
}

/** The delay after so many unknown answers in a row (1, 2, …). */
export function renewAgainInMs(lastsMs: number, unknowns: number, chance: number): number {
  return lastsMs * Math.min(RETRY_LAST, RETRY_FIRST * 2 ** (unknowns - 1)) * (0.5 + chance);
}

/** The moment, on the grid of leases with this ttl, that is so far from now. */
function onGrid(now: number, inMs: number, ttlMs: number): number {
  const gridMs = Math.min(WIDEST_GRID_MS, Math.max(1, ttlMs * GRID));
  return Math.max(now + MIN_RENEWAL_DELAY_MS, Math.floor((now + inMs) / gridMs) * gridMs);
}
