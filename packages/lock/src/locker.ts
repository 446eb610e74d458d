// The locker: each public call reads what it was given, waits for the first contact with the nodes,
// and hands over to the verb that does it.

import { FleetCalls } from "./fleet.js";
import { retryAfterMs } from "./lease/context.js";
import { HeldLease } from "./lease/held-lease.js";
import { inspectAll, leaderIn, summarize } from "./lease/inspect.js";
import { describeLost } from "./lease/messages.js";
import { shown } from "./options/option.js";
import { type Policy, policyFor, readLeaseRequest, readResource } from "./options/policy.js";
import { type Clock, InFlight } from "./platform/clock.js";
import { DeadlineHeap } from "./platform/deadline-heap.js";
import { LockError } from "./protocol/ballot.js";
import type { Fleet, FleetState, Inspection, OpenFleet } from "./protocol/fleet.js";
import type {
  AcquireOptions,
  Attempted,
  Campaign,
  CampaignOptions,
  Leader,
  Lease,
  Locker,
  Resources,
  TermRoutine,
  TryAcquireOptions,
  UsingOptions,
} from "./protocol/locker.js";
import { LeastToken } from "./protocol/token.js";
import { LeaderCampaign } from "./waiting/campaign.js";
import { LocalQueue, QueuedResources, type WaitContext } from "./waiting/context.js";
import { FirstContact } from "./waiting/first-contact.js";
import { closeWaiters, LookTimer, WaitBudget } from "./waiting/wait-budget.js";
import { AcquireCalls } from "./waiting/wait-for-lease.js";

type Routine<Result> = (lease: Lease) => Result | PromiseLike<Result>;

export class QuorumLocker implements Locker {
  readonly fleet: Fleet;
  readonly #nodes: OpenFleet;
  readonly #context: WaitContext;
  readonly #firstContact: FirstContact;
  readonly #calls: AcquireCalls;
  #closing: Promise<void> | undefined;

  constructor(fleet: OpenFleet, policy: Policy, clock: Clock) {
    const queuedResources = new QueuedResources(clock);
    const present = () => ({ nodes: fleet.nodes, policy: policyFor(fleet.nodes.length, policy), fleetMaxTtlMs: fleet.maxTtlMs });
    const context: WaitContext = {
      ...present(),
      clock,
      deadlines: new DeadlineHeap(clock),
      inFlight: new InFlight(),
      leastToken: new LeastToken(),
      checkFleetTtl: (ttlMs) => this.#firstContact.checkTtl(ttlMs),
      isWanted: (resources) => this.#calls.isWanted(resources),
      onReleased: (resources, ballots) => queuedResources.released(resources, ballots),
      queuedResources,
      looks: new LookTimer(clock),
      resourceQueue: new LocalQueue(1),
      waiters: { closed: false, sleeping: new Set() },
      onMembers: new Set(),
    };
    this.#nodes = fleet;
    this.#context = context;
    this.#firstContact = new FirstContact(context, fleet);
    this.#calls = new AcquireCalls(context, this.#firstContact);
    this.fleet = new FleetCalls(fleet, context, this.#firstContact);
    // Fields, since every acquisition reads them.
    fleet.onChange(() => {
      const { nodes } = context;
      Object.assign(context, present());
      if (context.nodes !== nodes) for (const told of [...context.onMembers]) told();
    });
  }

  ready(): Promise<FleetState> {
    return this.#firstContact.ready();
  }

  async acquire(resources: Resources, options?: AcquireOptions): Promise<Lease> {
    return this.#calls.waitFor(readLeaseRequest("acquire", this.#context.policy, { resources, options }));
  }

  async using<Result>(resources: Resources, ...rest: [UsingOptions | undefined, Routine<Result>] | [Routine<Result>]): Promise<Result> {
    const [options, routine] = rest.length === 1 ? [undefined, rest[0]] : rest;
    checkRoutine("using", routine);
    const lease = await this.#calls.waitFor(readLeaseRequest("using", this.#context.policy, { resources, options }));
    try {
      const result = await routine(lease);
      lease.assertLasted();
      return result;
    } finally {
      // Never throws, so the caller gets the routine's own error.
      await lease[Symbol.asyncDispose]();
    }
  }

  campaign(resource: string, routine: TermRoutine, options?: CampaignOptions): Campaign {
    readResource(resource);
    checkRoutine("campaign", routine);
    const { clock, policy, waiters } = this.#context;
    const request = readLeaseRequest("campaign", policy, { resources: resource, options });
    const waitMs = policy.retry.maxDelayMs;
    const candidate = {
      resource,
      elect: (signal: AbortSignal) => this.#calls.waitFor({ ...request, signal }),
      rest: (signal: AbortSignal) => new WaitBudget(clock, waiters, { waitMs, signal }).sleep(waitMs),
    };
    return new LeaderCampaign(candidate, routine, request.signal);
  }

  async tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted> {
    const { policy } = this.#context;
    const request = readLeaseRequest("tryAcquire", policy, { resources, options });
    const outcome = await this.#calls.tryOnce(request);
    if (outcome instanceof HeldLease) return { ok: true, lease: outcome, ballots: outcome.ballots };
    if (outcome instanceof LockError) return { ok: false, reason: "too_slow", message: outcome.message, ballots: outcome.ballots };
    const { reason, ballots } = outcome;
    const retryMs = retryAfterMs(outcome, policy);
    const retry = retryMs === undefined ? {} : { retryAfterMs: retryMs };
    return {
      ok: false,
      reason,
      ...retry,
      message: describeLost(request.resources, outcome, this.#context),
      ballots,
    };
  }

  async leader(resource: string): Promise<Leader | null> {
    return leaderIn(await this.inspect(resource), this.#context);
  }

  async inspect(resource: string): Promise<Inspection> {
    readResource(resource);
    await this.#firstContact.pass([resource]);
    return summarize(resource, await inspectAll(this.#context, resource), this.#context.policy);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    closeWaiters(this.#context.waiters);
    await this.#context.deadlines.close();
    await this.#context.inFlight.idle();
    await this.#nodes.close();
  }
}

function checkRoutine(call: string, routine: unknown): void {
  if (typeof routine !== "function") throw new TypeError(`${call} needs a routine to run, not ${shown(routine)}`);
}
