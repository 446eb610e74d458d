// The calls of acquire and tryAcquire of one locker: the turn among the callers of this process,
// acquisitions, and the waiting between them. Every way out but success has given back, on every
// node, whatever an acquisition may have been granted.
import { acquire } from "../lease/acquire.js";
import type { Lost, Wanted, Won } from "../lease/context.js";
import { HeldLease } from "../lease/held-lease.js";
import { busyError, lossError, queueError } from "../lease/messages.js";
import { giveBack } from "../lease/release.js";
import type { LeaseRequest } from "../options/policy.js";
import { LockError } from "../protocol/ballot.js";
import { channels, tracing, type WaitEvent } from "../protocol/events.js";
import { LocalQueue, type WaitContext } from "./context.js";
import type { FirstContact } from "./first-contact.js";
import { WaitBudget } from "./wait-budget.js";
import { WakeUp } from "./wake-up.js";

/**
 * Acquisitions at once: enough to keep five nodes busy without a pause, few enough for each to be
 * answered in time.
 */
const MAX_AT_ONCE = 1_024;
/** The one key of their queue. */
const ALL = "";
/** Callers of this process that want other sets and have tickets for one held resource. */
const MAX_SETS = 256;

export class AcquireCalls {
  readonly #context: WaitContext;
  readonly #firstContact: FirstContact;
  /**
   * Ten thousand requests at once would take a node longer than it may take to answer one: the last
   * ones would count as unanswered, be sent again, and add to the load that made them late.
   */
  readonly #atOnce = new LocalQueue(MAX_AT_ONCE);
  /**
   * By the held resource. A node keeps so many tickets of it; those without one poll, each in a
   * script call of its own, until the nodes answer nobody in time.
   */
  readonly #sets = new LocalQueue(MAX_SETS);

  constructor(context: WaitContext, firstContact: FirstContact) {
    this.#context = context;
    this.#firstContact = firstContact;
  }

  /** A caller wants the very same resources, or waits for them. */
  isWanted(resources: readonly string[]): boolean {
    return this.#context.resourceQueue.isOccupied(lineOf(resources));
  }

  /**
   * One acquisition, at once. A LockError if the nodes were not even asked, because this process
   * has too much in flight.
   */
  tryOnce(request: LeaseRequest): Promise<HeldLease | Lost | LockError> {
    return tracing.spans === undefined ? this.#tryOnce(request) : this.#tryTraced(request);
  }

  async #tryTraced(request: LeaseRequest): Promise<HeldLease | Lost | LockError> {
    const span = tracing.spans?.begin("acquire", request);
    try {
      const outcome = await this.#tryOnce(request);
      if (outcome instanceof HeldLease) span?.end({ outcome: "won", isFailure: false, token: outcome.token });
      else if (outcome instanceof LockError) span?.end({ outcome: outcome.code, isFailure: true });
      else span?.end({ outcome: outcome.reason, isFailure: outcome.reason !== "held" });
      return outcome;
    } catch (error) {
      span?.end({ outcome: nameOf(error), isFailure: true });
      throw error;
    }
  }

  async #tryOnce(request: LeaseRequest): Promise<HeldLease | Lost | LockError> {
    const { clock, inFlight, waiters } = this.#context;
    const budget = new WaitBudget(clock, waiters, { waitMs: 0, signal: undefined });
    inFlight.begin();
    try {
      if (!this.#firstContact.isDone) await this.#firstContact.wait();
      return await this.#acquire(request, budget);
    } catch (error) {
      if (error instanceof LockError && error.code === "LOCK_TOO_SLOW") return error;
      throw error;
    } finally {
      inFlight.end();
    }
  }

  /** Acquires until it is won, or throws. */
  waitFor(request: LeaseRequest): Promise<HeldLease> {
    const isObserved = channels.wait.hasSubscribers || tracing.spans !== undefined;
    return isObserved ? this.#waitObserved(request) : this.#waitFor(request);
  }

  async #waitObserved(request: LeaseRequest): Promise<HeldLease> {
    const { clock, resourceQueue } = this.#context;
    const { resources } = request;
    const startedAt = clock.monotonicMs();
    const span = tracing.spans?.begin("acquire", request);
    const publish = (end: Pick<WaitEvent, "outcome" | "token">): void => {
      const queueLength = resourceQueue.length(lineOf(resources));
      if (channels.wait.hasSubscribers)
        channels.wait.publish({ resources, ...end, waitedMs: clock.monotonicMs() - startedAt, queueLength });
    };
    try {
      const lease = await this.#waitFor(request);
      publish({ outcome: "won", token: lease.token });
      span?.end({ outcome: "won", isFailure: false, token: lease.token });
      return lease;
    } catch (error) {
      span?.end({ outcome: nameOf(error), isFailure: true });
      if (error instanceof LockError) publish({ outcome: error.code });
      throw error;
    }
  }

  async #waitFor(request: LeaseRequest): Promise<HeldLease> {
    const { resources } = request;
    const { clock, inFlight, resourceQueue, waiters } = this.#context;
    const budget = new WaitBudget(clock, waiters, request);
    const line = lineOf(resources);
    inFlight.begin();
    try {
      budget.check(resources);
      if (!this.#firstContact.isDone) await this.#firstContact.wait(request.signal);
      if (!resourceQueue.tryEnter(line)) await this.#queueIn(line, request, budget);
      return await this.#contend(line, request, budget);
    } finally {
      inFlight.end();
    }
  }

  // First in this process: contends with other processes. Leaves the line: of callers that give up
  // one after the other each would queue up anew, and the process would never have its turn.
  async #contend(line: string, request: LeaseRequest, budget: WaitBudget): Promise<HeldLease> {
    const { resources } = request;
    const { policy, queuedResources, resourceQueue } = this.#context;
    const place = resourceQueue.placeOf(line);
    // Where others are known to wait, the first request asks for a place behind them.
    const isQueue = place !== undefined || (budget.leftMs > 0 && queuedResources.hasOneOf(resources));
    let wakeUp = isQueue ? new WakeUp(this.#context, resources, { budget, place }) : undefined;
    let lease: HeldLease | undefined;
    let refusedFor: string | undefined;
    try {
      for (let tries = 1; ; tries++) {
        const outcome = await this.#acquire(request, budget, wakeUp);
        if (outcome instanceof HeldLease) {
          lease = outcome;
          wakeUp?.won();
          return lease;
        }
        resourceQueue.noteLoss(line, outcome);
        if (tries >= policy.retry.tries || budget.leftMs === 0) throw lossError(resources, outcome, this.#context);
        const held = heldOf(outcome);
        if (resources.length > 1 && held !== undefined && held !== refusedFor) {
          if (refusedFor !== undefined) this.#sets.leave(refusedFor);
          refusedFor = undefined;
          const isTurn = this.#sets.tryEnter(held) || (await hasTurn(this.#sets, held, budget));
          if (isTurn) refusedFor = held;
          budget.check(resources);
          if (!isTurn && budget.isOver) throw lossError(resources, outcome, this.#context);
        }
        wakeUp ??= new WakeUp(this.#context, resources, { budget });
        await wakeUp.sleep(outcome);
      }
    } finally {
      if (refusedFor !== undefined) this.#sets.leave(refusedFor);
      const isLeft = resourceQueue.leave(line, lease === undefined ? wakeUp?.place : undefined);
      wakeUp?.stop(lease !== undefined || isLeft);
    }
  }

  // Behind others of this process. Returns when this caller is the first.
  async #queueIn(line: string, { resources }: LeaseRequest, budget: WaitBudget): Promise<void> {
    const { resourceQueue } = this.#context;
    const inFront = resourceQueue.length(line) + 1;
    if (await hasTurn(resourceQueue, line, budget)) return;
    budget.check(resources);
    throw queueError(resources, { inFront, last: resourceQueue.lastLoss(line) }, this.#context);
  }

  async #acquire(request: LeaseRequest, budget: WaitBudget, wakeUp?: WakeUp): Promise<HeldLease | Lost> {
    budget.check(request.resources);
    this.#firstContact.check();
    this.#context.checkFleetTtl(request.ttlMs);
    if (!this.#atOnce.tryEnter(ALL)) await this.#queueBehindAll(request, budget);
    try {
      budget.check(request.resources);
      const wanted: Wanted = wakeUp === undefined ? request : { ...request, wait: wakeUp.asking() };
      const outcome = await acquire(this.#context, wanted);
      if (outcome.kind === "won") return this.#keep(outcome, request, budget);
      this.#firstContact.check();
      return outcome;
    } finally {
      this.#atOnce.leave(ALL);
    }
  }

  async #queueBehindAll(request: LeaseRequest, budget: WaitBudget): Promise<void> {
    if (await hasTurn(this.#atOnce, ALL, this.#patience(request, budget))) return;
    budget.check(request.resources);
    throw busyError(request.resources, MAX_AT_ONCE);
  }

  // waitMs 0 still waits up to nodeTimeoutMs before the nodes are asked: a short local queue must
  // not look like a held lock.
  #patience({ signal }: LeaseRequest, { leftMs }: WaitBudget): WaitBudget {
    const { clock, policy, waiters } = this.#context;
    return new WaitBudget(clock, waiters, { waitMs: Math.max(leftMs, policy.nodeTimeoutMs), signal });
  }

  // Unless the caller gave up, or the locker was closed, while the nodes were voting. No await in
  // between: a locker that is closed from here on finds the lease.
  #keep(won: Won, request: LeaseRequest, budget: WaitBudget): HeldLease {
    try {
      budget.check(won.resources);
    } catch (error) {
      giveBack(this.#context, { resources: won.resources, owner: won.owner, tells: true }, won.votes);
      throw error;
    }
    return new HeldLease(this.#context, won, request);
  }
}

/** The resource that others have. */
function heldOf({ ballots }: Lost): string | undefined {
  for (const ballot of ballots) if (ballot.kind === "held") return ballot.resource;
  return undefined;
}

function nameOf(error: unknown): string {
  return error instanceof LockError ? error.code : error instanceof Error ? error.name : "error";
}

/**
 * Callers of several resources queue only behind those of the very same: in the line of each they
 * would keep others from one that is free while they wait for the rest. The nodes take all or none.
 */
function lineOf(resources: readonly string[]): string {
  // No resource contains a lone surrogate.
  return resources.length === 1 ? (resources[0] ?? "") : [...resources].sort().join("\ud800");
}

/** Queues up and sleeps. False if the budget ended first; then the caller has left the queue. */
async function hasTurn(queue: LocalQueue, key: string, budget: WaitBudget): Promise<boolean> {
  let isOurTurn = false;
  const stepOut = queue.enqueue(key, () => {
    isOurTurn = true;
    budget.wake();
  });
  await budget.sleep(budget.leftMs);
  if (!isOurTurn) stepOut();
  return isOurTurn;
}
