// Keeps one lease: its deadline by two clocks, its renewals, its end. Decides when the lease is held; never asks a node itself (renewal.ts and release.ts do).
// Ten thousand of these live in one process, so there is no timer, no AbortController and no closure per lease until somebody asks for one.

import { shown } from "../options/option.js";
import { checkTtl } from "../options/policy.js";
import type { Deadline } from "../platform/deadline-heap.js";
import type { Ballot } from "../protocol/ballot.js";
import { type LeaseLostReason, LockError } from "../protocol/errors.js";
import { channels } from "../protocol/events.js";
import type { Lease, Release, Renewal } from "../protocol/lease.js";
import type { Grant } from "../protocol/outcome.js";
import { askAgainInMs, onGrid, RENEWAL_FLOOR_MS, renewInMs } from "../quorum/renewal-pacing.js";
import { castBallots } from "../quorum/round.js";
import { neededTtlMs, remainingMs, validityMs } from "../quorum/validity.js";
import type { LeaseContext } from "./context.js";
import { writeHandOver } from "./hand-over.js";
import { describeLoss } from "./messages.js";
import { releaseEverywhere } from "./release.js";
import { renew } from "./renew.js";

export interface Keeping {
  readonly renew: boolean;
  /** Infinity: no limit. */
  readonly maxHoldMs: number;
}

/** The part of the validity that is over when the holder is warned. */
const DANGER = 0.75;

export class HeldLease implements Lease, Deadline {
  dueAt = 0;
  heapIndex = -1;
  readonly resources: readonly string[];
  readonly token: number;
  readonly #core: LeaseContext;
  readonly #owner: string;
  readonly #votes: readonly (Ballot | undefined)[];
  readonly #holdUntilAt: number;
  // The deadline: the moment before the first byte of the last successful round left, and how long the lease lasts from then on.
  #startMonotonicMs: number;
  #startWallMs: number;
  #lastsMs: number;
  #ttlMs: number;
  #renews: boolean;
  #renewAt = Number.POSITIVE_INFINITY;
  #dangerTold = false;
  #unknowns = 0;
  /** How often the nodes were asked to hold it longer. */
  #extensions = 0;
  #handedOver = false;
  #trouble: LeaseLostReason = "expired";
  #ended: LeaseLostReason | undefined;
  #controller: AbortController | undefined;
  #dangerListeners: Set<(remainingMs: number) => void> | undefined;
  #extending: Promise<Renewal> | undefined;
  #release: Promise<Release> | undefined;

  constructor(core: LeaseContext, grant: Grant, keeping: Keeping) {
    this.#core = core;
    this.resources = grant.resources;
    this.token = grant.token;
    this.#owner = grant.owner;
    this.#ttlMs = grant.ttlMs;
    this.#votes = grant.votes;
    this.#startMonotonicMs = grant.startMonotonicMs;
    this.#startWallMs = grant.startWallMs;
    this.#holdUntilAt = grant.startMonotonicMs + keeping.maxHoldMs;
    this.#lastsMs = this.#capped(grant.startMonotonicMs);
    this.#renews = keeping.renew;
    if (keeping.renew) this.#planRenewal(renewInMs(this.#lastsMs, core.clock.random()));
    this.#setAlarm();
  }

  get resource(): string {
    return this.resources[0] ?? "";
  }

  get ballots(): readonly Ballot[] {
    return castBallots(this.#votes);
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

  async extend(ttlMs?: number): Promise<Renewal> {
    if (ttlMs !== undefined) {
      checkTtl(this.#core.policy, ttlMs);
      this.#core.checkFleetTtl(ttlMs);
    }
    // One at a time: of two answers that overtake each other, the older one would tell of a ttl that the nodes do not have any more.
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
    // Found now rather than when the lease is in danger.
    if (typeof listener !== "function") throw new TypeError(`onDanger needs a function to call, not ${shown(listener)}`);
    this.#dangerListeners ??= new Set();
    this.#dangerListeners.add(listener);
    return () => this.#dangerListeners?.delete(listener);
  }

  serialize(): string {
    this.assertHeld();
    this.#handedOver = true;
    this.#renews = false;
    const { namespace } = this.#core.policy;
    return writeHandOver({ namespace, resources: this.resources, owner: this.#owner, token: this.token, ttlMs: this.#ttlMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#handedOver) await this.release();
  }

  /** The locker is closed: whoever holds this must stop. */
  async close(): Promise<void> {
    this.#end("closed");
    if (!this.#handedOver) await this.#giveBack();
  }

  /** Its moment in the shared heap has come: the end, the warning before it, or a renewal. */
  ring(): void {
    if (this.#endIfOver()) return;
    if (!this.#dangerTold && this.#leftMs() <= this.#lastsMs * (1 - DANGER) + 1) this.#tellDanger();
    const now = this.#core.clock.monotonicMs();
    if (now + 1 >= this.#renewAt && this.#isWorthRenewing(now)) this.#renewNow();
    if (this.#ended === undefined) this.#setAlarm();
  }

  #renewNow(): void {
    this.#renewAt = Number.POSITIVE_INFINITY;
    // What it led to is in the lease's state and in the telemetry: a lease that was lost has aborted its signal by the time this settles.
    this.extend().then(ignored, ignored);
  }

  async #extend(): Promise<Renewal> {
    const { clock, policy } = this.#core;
    const extension = ++this.#extensions;
    const startMonotonicMs = clock.monotonicMs();
    const startWallMs = clock.wallMs();
    const lastsMs = this.#capped(startMonotonicMs);
    // The nodes may hold it for less from now on, whether or not we hear that they do.
    if (lastsMs < this.#leftMs()) this.#count(startMonotonicMs, startWallMs, lastsMs);
    const { verdict, ballots } = await renew(this.#core, {
      resources: this.resources,
      owner: this.#owner,
      token: this.token,
      ttlMs: Math.min(this.#ttlMs, Math.ceil(neededTtlMs(lastsMs, policy.driftFactor))),
      wanted: () => this.#ended === undefined && this.#extensions === extension,
    });
    if (verdict === "renewed") {
      this.#trouble = "expired";
      this.#unknowns = 0;
      this.#dangerTold = false;
      if (this.#ended === undefined) this.#count(startMonotonicMs, startWallMs, lastsMs);
      this.#planRenewal(renewInMs(lastsMs, clock.random()));
    } else if (verdict === "lost") {
      this.#end("taken");
    } else {
      this.#trouble = ballots.some((ballot) => ballot.kind === "quarantined") ? "quarantined" : "unreachable";
      this.#planRenewal(askAgainInMs(this.#lastsMs, ++this.#unknowns, clock.random()));
    }
    const over = this.#endIfOver();
    if (channels.renewal.hasSubscribers) {
      const { resources, token } = this;
      channels.renewal.publish({ resources, token, outcome: verdict, remainingMs: over ? 0 : this.#leftMs(), ballots });
    }
    if (over || verdict === "lost") throw this.#lost(ballots);
    this.#setAlarm();
    return { outcome: verdict, remainingMs: this.#leftMs(), ballots };
  }

  /** What a grant of the ttl asked for lasts from this moment on, within maxHoldMs. */
  #capped(fromMonotonicMs: number): number {
    return Math.min(validityMs(this.#ttlMs, this.#core.policy.driftFactor), this.#holdUntilAt - fromMonotonicMs);
  }

  #count(startMonotonicMs: number, startWallMs: number, lastsMs: number): void {
    this.#startMonotonicMs = startMonotonicMs;
    this.#startWallMs = startWallMs;
    this.#lastsMs = lastsMs;
  }

  #leftMs(): number {
    const { clock } = this.#core;
    return remainingMs(this.#lastsMs, clock.monotonicMs() - this.#startMonotonicMs, clock.wallMs() - this.#startWallMs);
  }

  #planRenewal(inMs: number): void {
    this.#renewAt = onGrid(this.#core.clock.monotonicMs(), inMs, this.#ttlMs);
  }

  #setAlarm(): void {
    const leftMs = this.#leftMs();
    const now = this.#core.clock.monotonicMs();
    let at = now + leftMs;
    if (!this.#dangerTold) at = Math.min(at, at - this.#lastsMs * (1 - DANGER));
    if (this.#isWorthRenewing(now)) at = Math.min(at, this.#renewAt);
    this.#core.deadlines.set(this, at);
  }

  // No renewal can prolong what maxHoldMs ends. A few milliseconds are nothing: the wall clock counts in whole ones.
  #isWorthRenewing(now: number): boolean {
    return this.#renews && now + this.#leftMs() < this.#holdUntilAt - RENEWAL_FLOOR_MS;
  }

  #tellDanger(): void {
    this.#dangerTold = true;
    const leftMs = this.#leftMs();
    if (channels.danger.hasSubscribers) channels.danger.publish({ resources: this.resources, token: this.token, remainingMs: leftMs });
    for (const listener of this.#dangerListeners ?? []) {
      // Not called from here: what a listener throws must not keep other leases from their deadlines.
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
    this.#core.deadlines.clear(this);
    this.#controller?.abort(this.#lost());
    if (reason !== "released" && channels.loss.hasSubscribers)
      channels.loss.publish({ resources: this.resources, token: this.token, reason });
    // An extension that was not answered, or not in time, may have been executed, or be still on its way: nodes would hold for a whole ttl what nobody has.
    if (reason === "taken" || (this.#extensions > 0 && !this.#handedOver)) void this.#giveBack();
  }

  #giveBack(): Promise<Release> {
    this.#release ??= releaseEverywhere(this.#core, { resources: this.resources, owner: this.#owner, token: this.token });
    return this.#release;
  }

  #lost(ballots: readonly Ballot[] = []): LockError {
    const reason = this.#ended ?? this.#trouble;
    return new LockError("LEASE_LOST", describeLoss(this, reason, this.#lastsMs), { resources: this.resources, ballots, reason });
  }
}

// The caller who asked for the extension hears of it; whoever only waits for its end does not need to.
function ignored(): void {}
