// What createLocker gives: reads what a call asks for, has it acquired, and gives out leases. Knows no Redis, and does not count: attempts and waiting are
// acquisition.ts, votes are quorum/.

import { readHandOver } from "./lease/hand-over.js";
import { HeldLease } from "./lease/held-lease.js";
import { conclude, survey } from "./lease/inspect.js";
import { adoptionError } from "./lease/loss-error.js";
import { describeLost } from "./lease/messages.js";
import { forceRelease, wasIssued } from "./lease/raise.js";
import { renew } from "./lease/renew.js";
import { TtlLimit } from "./lease/ttl-limit.js";
import { readAdoptOptions, readLeaseRequest, readResource } from "./options/lease-request.js";
import { shown, wellFormedText, wholeNumber } from "./options/option.js";
import { checkTtl, type LockerOptions, type Policy, readPolicy } from "./options/policy.js";
import type { Clock } from "./platform/clock.js";
import { systemClock } from "./platform/clock.js";
import { DeadlineHeap } from "./platform/deadline-heap.js";
import { Work } from "./platform/in-flight.js";
import { LockError } from "./protocol/errors.js";
import { channels } from "./protocol/events.js";
import type { Finding, Fleet, FleetState } from "./protocol/fleet.js";
import type { Lease } from "./protocol/lease.js";
import type {
  AcquireOptions,
  Attempted,
  ForcedRelease,
  Inspection,
  KeepOptions,
  Locker,
  Resources,
  TryAcquireOptions,
  UsingOptions,
} from "./protocol/locker.js";
import type { Lost } from "./protocol/outcome.js";
import { MAX_TOKEN } from "./protocol/token.js";
import { openNodes } from "./redis/open-nodes.js";
import type { WaitContext } from "./waiting/context.js";
import { FirstContact } from "./waiting/first-contact.js";
import { LocalQueue } from "./waiting/local-queue.js";
import { closedError, type WaitBudget } from "./waiting/wait-budget.js";
import { Acquisition } from "./waiting/wait-for-lease.js";
import { YieldAfterRelease } from "./waiting/yield-after-release.js";

type Routine<Result> = (lease: Lease) => Result | PromiseLike<Result>;

export class QuorumLocker implements Locker {
  readonly #fleet: Fleet;
  readonly #core: WaitContext;
  readonly #firstContact: FirstContact;
  readonly #acquisition: Acquisition;
  #closing: Promise<void> | undefined;

  constructor(fleet: Fleet, policy: Policy, clock: Clock) {
    this.#fleet = fleet;
    const localQueue = new LocalQueue<Lost>();
    const yieldAfterRelease = new YieldAfterRelease(clock, (resource) => localQueue.occupied(resource));
    const waiters = { closed: false, sleeping: new Set<WaitBudget>() };
    const limit = new TtlLimit(fleet);
    this.#core = {
      nodes: fleet.nodes,
      policy,
      clock,
      checkFleetTtl: (ttlMs) => limit.check(ttlMs),
      localQueue,
      onReleased: (resources, ballots) => yieldAfterRelease.released(resources, ballots),
      yieldAfterRelease,
      waiters,
      deadlines: new DeadlineHeap(clock),
      work: new Work(),
    };
    this.#firstContact = new FirstContact(this.#core, fleet);
    this.#acquisition = new Acquisition(this.#core, this.#firstContact);
  }

  ready(): Promise<FleetState> {
    return this.#firstContact.ready();
  }

  async acquire(resources: Resources, options?: AcquireOptions): Promise<Lease> {
    const request = readLeaseRequest("acquire", this.#core.policy, { resources, options });
    return this.#acquisition.wait(request);
  }

  async tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted> {
    const { policy } = this.#core;
    const request = readLeaseRequest("tryAcquire", policy, { resources, options });
    const outcome = await this.#acquisition.once(request);
    if (outcome instanceof HeldLease) return { ok: true, lease: outcome, ballots: outcome.ballots };
    if (outcome instanceof LockError) return { ok: false, reason: "too_slow", message: outcome.message, ballots: outcome.ballots };
    const { reason, ballots, freeInMs } = outcome;
    const retry = reason === "held" && freeInMs !== undefined ? { retryAfterMs: freeInMs } : {};
    return { ok: false, reason, ...retry, message: describeLost(request.resources, outcome, policy), ballots };
  }

  async using<Result>(resources: Resources, ...rest: [UsingOptions | undefined, Routine<Result>] | [Routine<Result>]): Promise<Result> {
    const [options, routine] = rest.length === 1 ? [undefined, rest[0]] : rest;
    if (typeof routine !== "function") throw new TypeError(`using needs a routine to run, not ${shown(routine)}`);
    const request = readLeaseRequest("using", this.#core.policy, { resources, options });
    const lease = await this.#acquisition.wait(request);
    try {
      return await routine(lease);
    } finally {
      // Never throws: the routine's own result or error is what the caller gets.
      await lease[Symbol.asyncDispose]();
    }
  }

  async adopt(text: string, options?: KeepOptions): Promise<Lease> {
    const keeping = readAdoptOptions(options);
    const { clock, policy, waiters } = this.#core;
    const { namespace, ...told } = readHandOver(text);
    if (namespace !== policy.namespace) throw new RangeError(`this lease belongs to namespace ${namespace}, not ${policy.namespace}`);
    checkTtl(policy, told.ttlMs);
    await this.#begin(told.resources);
    this.#core.checkFleetTtl(told.ttlMs);
    const startMonotonicMs = clock.monotonicMs();
    const startWallMs = clock.wallMs();
    let lease: HeldLease | undefined;
    const { verdict, ballots } = await renew(this.#core, { ...told, wanted: () => !waiters.closed && lease?.held !== false });
    if (waiters.closed) throw closedError(told.resources);
    if (verdict !== "renewed") throw adoptionError(told, { verdict, ballots });
    lease = new HeldLease(this.#core, { ...told, startMonotonicMs, startWallMs, votes: ballots }, keeping);
    lease.assertHeld();
    return lease;
  }

  async inspect(resource: string): Promise<Inspection> {
    readResource(resource);
    await this.#begin([resource]);
    return conclude(resource, await survey(this.#core, resource), this.#core.policy);
  }

  async forceRelease(resource: string, options: { readonly reason: string }): Promise<ForcedRelease> {
    readResource(resource);
    const reason = wellFormedText("reason", options?.reason, 1_024);
    await this.#begin([resource]);
    return forceRelease(this.#core, resource, reason);
  }

  async issued(resource: string, token: number): Promise<boolean> {
    readResource(resource);
    wholeNumber("token", token, { min: 1, max: MAX_TOKEN });
    await this.#begin([resource]);
    return wasIssued(this.#core, resource, token);
  }

  async doctor(): Promise<readonly Finding[]> {
    if (this.#core.waiters.closed) throw closedError([]);
    await this.#firstContact.wait();
    return this.#fleet.probe();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    this.#core.waiters.closed = true;
    for (const waiter of [...this.#core.waiters.sleeping]) waiter.wake();
    await this.#core.deadlines.close();
    await this.#core.work.idle();
    await this.#fleet.close();
  }

  async #begin(resources: readonly string[]): Promise<void> {
    if (!this.#firstContact.done) await this.#firstContact.wait();
    if (this.#core.waiters.closed) throw closedError(resources);
    this.#firstContact.check();
  }
}

/**
 * A locker over N independent Redis masters. Begins to connect at once; nothing needs to be awaited before the first call. Throws TypeError or RangeError for
 * options that cannot be right, before any I/O.
 */
export function createLocker(options: LockerOptions): Locker {
  const policy = readPolicy(options);
  const clock = systemClock();
  const { namespace, nodeTimeoutMs, connectTimeoutMs, maxTtlMs, retentionMs } = policy;
  const fleet = openNodes({
    nodes: options.nodes,
    namespace,
    nodeTimeoutMs,
    connectTimeoutMs,
    maxTtlMs,
    retentionMs,
    clock,
    onEvent: (event) => {
      if (channels.node.hasSubscribers) channels.node.publish(event);
    },
  });
  return new QuorumLocker(fleet, policy, clock);
}
