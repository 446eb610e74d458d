// The locker: each public call reads what it was given, waits for the first contact with the nodes,
// and hands over to the verb that does it.
import { retryAfterMs } from "./lease/context.js";
import { HeldLease } from "./lease/held-lease.js";
import { answersOf, heldResources, inspectAll, inspectNodes, leaderIn, raiseMark, summarize } from "./lease/inspect.js";
import { closedError, describeLost } from "./lease/messages.js";
import { forceRelease, highestToken, wasIssued } from "./lease/raise.js";
import { foreignTokenOption, shown, tokenOption, wellFormedText } from "./options/option.js";
import {
  type Policy,
  policyFor,
  readLeaseRequest,
  readListHeldOptions,
  readMemberChange,
  readNames,
  readReconfigureOptions,
  readResource,
} from "./options/policy.js";
import { type Clock, InFlight } from "./platform/clock.js";
import { DeadlineHeap } from "./platform/deadline-heap.js";
import { LockError } from "./protocol/ballot.js";
import type {
  Finding,
  Fleet,
  FleetMembers,
  FleetState,
  ForcedRelease,
  HeldResources,
  Inspection,
  ListHeldOptions,
  MemberChange,
  NodeInspection,
  ReconfigureOptions,
} from "./protocol/fleet.js";
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
  readonly #fleet: Fleet;
  readonly #context: WaitContext;
  readonly #firstContact: FirstContact;
  readonly #calls: AcquireCalls;
  #closing: Promise<void> | undefined;

  constructor(fleet: Fleet, policy: Policy, clock: Clock) {
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
    this.#fleet = fleet;
    this.#context = context;
    this.#firstContact = new FirstContact(context, fleet);
    this.#calls = new AcquireCalls(context, this.#firstContact);
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
    await this.#begin([resource]);
    return summarize(resource, await inspectAll(this.#context, resource), this.#context.policy);
  }

  async forceRelease(resource: string, options: { readonly reason: string }): Promise<ForcedRelease> {
    readResource(resource);
    const reason = wellFormedText("reason", options?.reason, 1_024);
    await this.#begin([resource]);
    return forceRelease(this.#context, resource, reason);
  }

  async issued(resource: string, token: number): Promise<boolean> {
    readResource(resource);
    tokenOption(token);
    await this.#begin([resource]);
    return wasIssued(this.#context, resource, token);
  }

  async listResources(): Promise<readonly string[]> {
    await this.#begin([]);
    const names = answersOf(this.#context, "the list of resources", await this.#fleet.listResources());
    return [...new Set(names.flat())];
  }

  async listHeld(options?: ListHeldOptions): Promise<HeldResources> {
    const { prefix, limit } = readListHeldOptions(options);
    await this.#begin([]);
    return heldResources(this.#context, await this.#fleet.listHeld(prefix), limit);
  }

  async nodes(): Promise<readonly NodeInspection[]> {
    await this.#begin([]);
    return inspectNodes(this.#context, this.#fleet);
  }

  async highestToken(resource?: string, atLeast = 0): Promise<number> {
    if (resource !== undefined) readResource(resource);
    foreignTokenOption(atLeast, this.#context.clock.wallMs());
    await this.#begin([]);
    // Of a name that nobody uses the nodes know the highest token of any.
    if (resource === undefined) return highestToken(this.#context, this.#unused, atLeast);
    return highestToken(this.#context, resource, atLeast);
  }

  async mark(name: string, atLeast: number): Promise<number> {
    wellFormedText("name", name, 1_024);
    if (atLeast !== 0) tokenOption(atLeast);
    await this.#begin([]);
    return raiseMark(this.#context, this.#fleet, { name, atLeast });
  }

  async doctor(): Promise<readonly Finding[]> {
    if (this.#context.waiters.closed) throw closedError([]);
    await this.#firstContact.wait();
    return this.#fleet.probe();
  }

  async members(): Promise<FleetMembers> {
    await this.#begin([]);
    const members = this.#fleet.members();
    if (members !== undefined) return members;
    const { nodes, maxTtlMs } = this.#fleet;
    return { generation: 0, members: nodes.map(({ address }) => address), maxTtlMs: maxTtlMs ?? this.#context.policy.ttlMs };
  }

  async reconfigure(change: MemberChange, options?: ReconfigureOptions): Promise<FleetMembers> {
    const asked = readMemberChange(change);
    const limits = readReconfigureOptions(options);
    await this.#begin([]);
    return this.#fleet.reconfigure(asked, limits);
  }

  async foundWithout(absent: readonly string[]): Promise<FleetMembers> {
    const names = readNames(absent);
    if (!this.#firstContact.isDone) await this.#firstContact.wait();
    if (this.#context.waiters.closed) throw closedError([]);
    return this.#fleet.foundWithout(names);
  }

  get #unused(): string {
    return `palisade/any/${this.#context.clock.secret()}`;
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
    await this.#fleet.close();
  }

  async #begin(resources: readonly string[]): Promise<void> {
    if (!this.#firstContact.isDone) await this.#firstContact.wait();
    if (this.#context.waiters.closed) throw closedError(resources);
    this.#firstContact.check();
  }
}

function checkRoutine(call: string, routine: unknown): void {
  if (typeof routine !== "function") throw new TypeError(`${call} needs a routine to run, not ${shown(routine)}`);
}
