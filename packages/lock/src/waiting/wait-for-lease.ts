// How one caller gets what it asks for: its turn in this process, attempts, and waiting in between, until it has it or its patience ends. Every way out but success
// has given back, on every node, whatever an attempt may have taken.
import { attempt } from "../lease/acquire.js";
import { HeldLease } from "../lease/held-lease.js";
import { crowdError, lossError, queueError, tooManyError } from "../lease/loss-error.js";
import { giveBack } from "../lease/release.js";
import type { LeaseRequest } from "../options/lease-request.js";
import { LockError } from "../protocol/errors.js";
import type { Lost, Wish, Won } from "../protocol/outcome.js";
import type { WaitContext } from "./context.js";
import type { FirstContact } from "./first-contact.js";
import { Gate } from "./gate.js";
import { WaitBudget } from "./wait-budget.js";
import { Waiting } from "./wake-up.js";

/** Enough to keep five nodes busy without a pause, and little enough for each to answer in time. */
const ATTEMPTS_AT_ONCE = 1_024;

export class Acquisition {
  readonly #core: WaitContext;
  readonly #firstContact: FirstContact;
  readonly #gate = new Gate(ATTEMPTS_AT_ONCE);
  #underWay = 0;

  constructor(core: WaitContext, firstContact: FirstContact) {
    this.#core = core;
    this.#firstContact = firstContact;
  }

  /** One attempt, at once. An error if it was not even made, because this process has too much under way. */
  async once(request: LeaseRequest): Promise<HeldLease | Lost | LockError> {
    const { clock, waiters, policy, work } = this.#core;
    if (this.#underWay >= policy.maxWaiters) return tooManyError(request.resources, policy.maxWaiters);
    const budget = new WaitBudget(clock, waiters, { waitMs: 0, signal: undefined });
    this.#underWay++;
    work.begin();
    try {
      if (!this.#firstContact.done) await this.#firstContact.wait();
      return await this.#attempt(request, budget);
    } catch (error) {
      if (error instanceof LockError && error.code === "LOCK_TOO_SLOW") return error;
      throw error;
    } finally {
      this.#underWay--;
      work.end();
    }
  }

  /** Attempts until it is won, or throws. */
  async wait(request: LeaseRequest): Promise<HeldLease> {
    const { resources } = request;
    const { clock, waiters, policy } = this.#core;
    const budget = new WaitBudget(clock, waiters, request);
    // In the same order for everybody: of two callers who want several resources, one gets them all.
    const order = resources.length === 1 ? resources : [...resources].sort();
    let entered = 0;
    if (this.#underWay >= policy.maxWaiters) throw tooManyError(resources, policy.maxWaiters);
    this.#underWay++;
    this.#core.work.begin();
    try {
      budget.check(resources);
      if (!this.#firstContact.done) await this.#firstContact.wait(request.signal);
      for (const resource of order) {
        if (!this.#core.localQueue.tryEnter(resource)) await this.#queue(resource, request, budget);
        entered++;
      }
      return await this.#contend(request, budget);
    } finally {
      for (const resource of order.slice(0, entered)) this.#core.localQueue.leave(resource);
      this.#underWay--;
      this.#core.work.end();
    }
  }

  // In front of everybody else in this process.
  async #contend(request: LeaseRequest, budget: WaitBudget): Promise<HeldLease> {
    const { resources } = request;
    const yieldMs = this.#core.yieldAfterRelease.dueMs(resources);
    let waiting: Waiting | undefined;
    try {
      if (yieldMs > 0 && budget.leftMs > 0) {
        // Already listening meanwhile: the attempt that follows finds either the lock, or its holder whose release we shall hear of.
        waiting = new Waiting(this.#core, resources, budget);
        await waiting.yield(yieldMs);
      }
      for (let tries = 1; ; tries++) {
        waiting?.attempting();
        const wish = waiting === undefined ? request : { ...request, hasWaited: true as const };
        const outcome = await this.#attempt(wish, budget);
        if (outcome instanceof HeldLease) return outcome;
        for (const resource of resources) this.#core.localQueue.tell(resource, outcome);
        if (tries >= this.#core.policy.retry.tries || budget.leftMs === 0) throw lossError(resources, outcome, this.#core.policy);
        waiting ??= new Waiting(this.#core, resources, budget);
        await waiting.rest(outcome);
      }
    } finally {
      waiting?.stop();
    }
  }

  // Behind others of this process. Comes back when it is our turn.
  async #queue(resource: string, { resources }: LeaseRequest, budget: WaitBudget): Promise<void> {
    const inFront = this.#core.localQueue.length(resource) + 1;
    let ourTurn = false;
    const stepOut = this.#core.localQueue.enqueue(resource, () => {
      ourTurn = true;
      budget.wake();
    });
    await budget.sleep(budget.leftMs);
    if (ourTurn) return;
    const last = this.#core.localQueue.lastWord(resource);
    stepOut();
    budget.check(resources);
    throw queueError(resources, { inFront, last }, this.#core.policy);
  }

  async #attempt(request: LeaseRequest & Wish, budget: WaitBudget): Promise<HeldLease | Lost> {
    budget.check(request.resources);
    this.#firstContact.check();
    this.#core.checkFleetTtl(request.ttlMs);
    if (!this.#gate.tryEnter()) await this.#standInLine(request, budget);
    try {
      budget.check(request.resources);
      const outcome = await attempt(this.#core, request);
      if (outcome.kind === "won") return this.#keep(outcome, request, budget);
      this.#firstContact.check();
      return outcome;
    } finally {
      this.#gate.leave();
    }
  }

  // Comes back when there is room. Whoever has little patience, or none, has as much here as one question may take: a crowd that the nodes can cope with is none.
  async #standInLine({ resources, signal }: LeaseRequest, { leftMs }: WaitBudget): Promise<void> {
    const { clock, waiters, policy } = this.#core;
    const budget = new WaitBudget(clock, waiters, { waitMs: Math.max(leftMs, policy.nodeTimeoutMs), signal });
    let ourTurn = false;
    const stepOut = this.#gate.enqueue(() => {
      ourTurn = true;
      budget.wake();
    });
    await budget.sleep(budget.leftMs);
    if (ourTurn) return;
    stepOut();
    budget.check(resources);
    throw crowdError(resources, ATTEMPTS_AT_ONCE);
  }

  // Unless the caller gave up, or the locker was closed, while the nodes were voting. In one breath: a locker that is closed from here on finds the lease.
  #keep(won: Won, request: LeaseRequest, budget: WaitBudget): HeldLease {
    try {
      budget.check(won.resources);
    } catch (error) {
      giveBack(this.#core, won, won.votes);
      throw error;
    }
    return new HeldLease(this.#core, won, request);
  }
}
