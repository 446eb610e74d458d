// The calls of acquire and tryAcquire of one locker: the turn among the callers of this process,
// acquisitions, and the waiting between them. Every way out but success has given back, on every
// node, whatever an acquisition may have been granted.
import { acquire } from "../lease/acquire.js";
import { HeldLease } from "../lease/held-lease.js";
import { LocalQueue, lineOf } from "../lease/local-queue.js";
import { busyError, lossError, queueError } from "../lease/messages.js";
import { giveBack } from "../lease/release.js";
import type { LockerState, Lost, Wanted, Won } from "../lease/state.js";
import type { LeaseRequest } from "../options/policy.js";
import { LockError } from "../protocol/ballot.js";
import { channels, tracing } from "../protocol/events.js";
import type { FirstContact } from "./first-contact.js";
import { LookTimer, WaitBudget } from "./wait-budget.js";
import { WakeUp } from "./wake-up.js";

/**
 * Acquisitions at once: enough to keep five nodes busy without a pause, few enough for each to be
 * answered in time.
 */
const MAX_AT_ONCE = 1_024;
/** The one key of their queue. */
const ALL = "";

/**
 * For so long the first of its process waits for a lease of the same process without a word to the nodes. Longer
 * than one has a hot lock; short enough for what the nodes alone know: that the holder was removed by force.
 */
const STAND_BY_MS = 100;

export class AcquireCalls {
  readonly #locker: LockerState;
  readonly #firstContact: FirstContact;
  readonly #looks: LookTimer;
  /**
   * Ten thousand requests at once would take a node longer than it may take to answer one: the last
   * ones would count as unanswered, be sent again, and add to the load that made them late.
   */
  readonly #atOnce = new LocalQueue<Lost | undefined>(MAX_AT_ONCE);

  constructor(locker: LockerState, firstContact: FirstContact) {
    this.#locker = locker;
    this.#firstContact = firstContact;
    this.#looks = new LookTimer(locker.clock);
  }

  /**
   * One acquisition, at once. A LockError if the nodes were not even asked, because this process
   * has too much in flight, or hears of too few of them.
   */
  async tryOnce(request: LeaseRequest): Promise<HeldLease | Lost | LockError> {
    const { inFlight } = this.#locker;
    const span = tracing.spans?.begin("acquire", request);
    const budget = new WaitBudget(this.#locker, { waitMs: 0 });
    inFlight.begin();
    try {
      if (!this.#firstContact.isDone) await this.#firstContact.wait();
      const outcome = await this.#acquire(request, budget);
      if (outcome instanceof HeldLease) span?.end({ outcome: "won", isFailure: false, token: outcome.token });
      else span?.end({ outcome: outcome.reason, isFailure: outcome.reason !== "held" });
      return outcome;
    } catch (error) {
      span?.end({ outcome: nameOf(error), isFailure: true });
      if (error instanceof LockError && (error.code === "LOCK_TOO_SLOW" || error.code === "LOCK_NO_QUORUM")) return error;
      throw error;
    } finally {
      inFlight.end();
    }
  }

  /** Acquires until it is won, or throws. */
  async waitFor(request: LeaseRequest): Promise<HeldLease> {
    const { resources } = request;
    const { callers, inFlight } = this.#locker;
    const line = lineOf(resources);
    const observed = channels.wait.hasSubscribers || tracing.spans !== undefined ? this.#observe(request, line) : undefined;
    const budget = new WaitBudget(this.#locker, request);
    inFlight.begin();
    try {
      budget.check(resources);
      if (!this.#firstContact.isDone) await this.#firstContact.wait(request.signal);
      if (!callers.tryEnter(line)) await this.#queueIn(line, request, budget);
      const lease = await this.#contend(line, request, budget);
      observed?.(lease);
      return lease;
    } catch (error) {
      observed?.(error);
      throw error;
    } finally {
      inFlight.end();
    }
  }

  /** Leaves others their turn. */
  pause(signal: AbortSignal): Promise<void> {
    const waitMs = this.#locker.policy.retry.maxDelayMs;
    return new WaitBudget(this.#locker, { waitMs, signal }).sleep(waitMs);
  }

  /** For the event and the span of a call that begins; the returned function is told its end. */
  #observe(request: LeaseRequest, line: string): (end: unknown) => void {
    const { clock, callers } = this.#locker;
    const { resources } = request;
    const startedAt = clock.monotonicMs();
    const span = tracing.spans?.begin("acquire", request);
    return (end) => {
      const token = end instanceof HeldLease ? end.token : undefined;
      span?.end({ outcome: token === undefined ? nameOf(end) : "won", isFailure: token === undefined, token });
      if (!channels.wait.hasSubscribers) return;
      const told = { resources, waitedMs: clock.monotonicMs() - startedAt, queueLength: callers.length(line) };
      if (token !== undefined) channels.wait.publish({ ...told, outcome: "won", token });
      else if (end instanceof LockError) channels.wait.publish({ ...told, outcome: end.code });
    };
  }

  // First in this process: contends with other processes. When it leaves the line, the next one inherits
  // since when it waits: of callers that give up one after the other each would queue up anew, and
  // the process would never have its turn. Where it has the lock, the next one stands by, and follows
  // with the release: as a claim does, behind those of other processes that began earlier.
  async #contend(line: string, request: LeaseRequest, budget: WaitBudget): Promise<HeldLease> {
    const { resources } = request;
    const { callers, clock, policy } = this.#locker;
    const { since, lease: before } = callers.leftTo(line) ?? {};
    const waiting = { budget, looks: this.#looks, beganAt: clock.monotonicMs(), since };
    const standsByMs =
      policy.retry.tries === Number.POSITIVE_INFINITY ? Math.min(STAND_BY_MS, before?.remainingMs() ?? 0, budget.leftMs) : 0;
    // Who is far would be overtaken for another round trip if it were refused before it had a place.
    const claims = since !== undefined || standsByMs > 0 || (budget.leftMs > 0 && isFar(this.#locker));
    let wakeUp = claims ? new WakeUp(this.#locker, resources, waiting) : undefined;
    let lease: HeldLease | undefined;
    if (wakeUp !== undefined) callers.onRelease(line, this.#follower(wakeUp, request, budget));
    try {
      if (standsByMs > 0) await budget.sleep(standsByMs);
      for (let tries = 1; ; tries++) {
        const outcome = await (wakeUp?.asked() ?? this.#acquire(request, budget, wakeUp));
        if (outcome instanceof HeldLease) {
          lease = outcome;
          return lease;
        }
        callers.noteLoss(line, outcome);
        if (tries >= policy.retry.tries || budget.leftMs === 0) throw lossError(resources, outcome, this.#locker);
        if (wakeUp === undefined) {
          wakeUp = new WakeUp(this.#locker, resources, waiting);
          callers.onRelease(line, this.#follower(wakeUp, request, budget));
        }
        await wakeUp.sleep(outcome);
      }
    } finally {
      if (budget.isAsking) this.#stopAsking(budget);
      const hasSuccessor = callers.leave(line, lease === undefined ? { since: wakeUp?.since } : { lease });
      wakeUp?.stop(lease !== undefined || hasSuccessor);
    }
  }

  /** Told of leases that this process gives back. */
  #follower(wakeUp: WakeUp, request: LeaseRequest, budget: WaitBudget): (owner: string) => void {
    return (owner) => wakeUp.follow(owner, () => this.#acquire(request, budget, wakeUp));
  }

  // Behind others of this process. Returns when this caller is the first.
  async #queueIn(line: string, { resources }: LeaseRequest, budget: WaitBudget): Promise<void> {
    const { callers } = this.#locker;
    const inFront = callers.length(line) + 1;
    if (await hasTurn(callers, line, budget)) return;
    budget.check(resources);
    const isHeldHere = (callers.leftTo(line)?.lease?.remainingMs() ?? 0) > 0;
    throw queueError(resources, { inFront, last: callers.lastLoss(line), isHeldHere }, this.#locker);
  }

  // Of a fleet that does not answer in time every caller would learn so at once and make room for the
  // next, and thousands would ask in turn, over and over, within one turn of the event loop, in which no
  // answer can be heard. So who hears of too few nodes keeps its place until it has asked with success.
  async #acquire(request: LeaseRequest, budget: WaitBudget, wakeUp?: WakeUp): Promise<HeldLease | Lost> {
    budget.check(request.resources);
    this.#locker.checkUsable();
    if (request.hasOwnTtl) this.#locker.checkTtl(request.ttlMs);
    if (!budget.isAsking && !this.#atOnce.tryEnter(ALL)) await this.#queueBehindAll(request, budget);
    budget.isAsking = true;
    let silent: Lost | undefined;
    try {
      budget.check(request.resources);
      const wanted: Wanted = wakeUp === undefined ? request : { ...request, wait: wakeUp.asking() };
      const outcome = await acquire(this.#locker, wanted, wakeUp !== undefined || budget.leftMs > 0);
      if (outcome.kind === "won") return this.#keep(outcome, request, budget);
      if (outcome.reason === "no_quorum") silent = outcome;
      this.#locker.checkUsable();
      return outcome;
    } finally {
      this.#atOnce.noteLoss(ALL, silent);
      if (silent === undefined || budget.isOver) this.#stopAsking(budget);
    }
  }

  #stopAsking(budget: WaitBudget): void {
    budget.isAsking = false;
    this.#atOnce.leave(ALL);
  }

  // waitMs 0 still waits up to nodeTimeoutMs before the nodes are asked: a short local queue must
  // not look like a held lock.
  async #queueBehindAll(request: LeaseRequest, budget: WaitBudget): Promise<void> {
    const { resources, signal } = request;
    const waitMs = Math.max(budget.leftMs, this.#locker.policy.nodeTimeoutMs);
    if (await hasTurn(this.#atOnce, ALL, new WaitBudget(this.#locker, { waitMs, signal }))) return;
    budget.check(resources);
    const silent = this.#atOnce.lastLoss(ALL);
    throw silent === undefined ? busyError(resources, MAX_AT_ONCE) : lossError(resources, silent, this.#locker);
  }

  // Unless the caller gave up, or the locker was closed, while the nodes were voting. No await in
  // between: a locker that is closed from here on finds the lease.
  #keep(won: Won, request: LeaseRequest, budget: WaitBudget): HeldLease {
    try {
      budget.check(won.resources);
    } catch (error) {
      const { inFlight } = this.#locker;
      giveBack({ nodes: won.nodes, inFlight }, { resources: won.resources, owner: won.owner, tells: true }, won.ballots);
      throw error;
    }
    return new HeldLease(this.#locker, won, request);
  }
}

const FAR_MS = 10;

/** From a quorum. */
function isFar({ nodes, policy }: LockerState): boolean {
  let far = 0;
  for (const { distanceMs } of nodes) if (distanceMs > FAR_MS && distanceMs !== Number.POSITIVE_INFINITY) far++;
  return nodes.length - far < policy.quorum;
}

function nameOf(error: unknown): string {
  return error instanceof LockError ? error.code : error instanceof Error ? error.name : "error";
}

/** Queues up and sleeps. False if the budget ended first; then the caller has left the queue. */
async function hasTurn(queue: Pick<LocalQueue, "enqueue">, key: string, budget: WaitBudget): Promise<boolean> {
  let isOurTurn = false;
  const stepOut = queue.enqueue(key, () => {
    isOurTurn = true;
    budget.wake();
  });
  await budget.sleep(budget.leftMs);
  if (!isOurTurn) stepOut();
  return isOurTurn;
}
