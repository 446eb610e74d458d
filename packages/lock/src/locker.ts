// The locker: each public call reads what it was given, waits for the first contact with the nodes,
// and hands over to the verb that does it.
import { Adoptions } from "./lease/adopt.js";
import { checkHere } from "./lease/elsewhere.js";
import { readHandOver } from "./lease/hand-over.js";
import { HeldLease } from "./lease/held-lease.js";
import { inspectAll, inspectNodes, leaderIn, summarize } from "./lease/inspect.js";
import { answersOf, heldResources } from "./lease/list-held.js";
import { raiseMark } from "./lease/mark.js";
import { closedError, describeLost } from "./lease/messages.js";
import { forceRelease, highestToken, wasIssued } from "./lease/raise.js";
import { retryAfterMs } from "./lease/time-until-free.js";
import { type LeaseRequest, readAdoptOptions, readLeaseRequest, readListHeldOptions, readResource } from "./options/lease-request.js";
import { readChangeLimits, readMemberChange, readNames } from "./options/member-change.js";
import { policyFor } from "./options/member-policy.js";
import { foreignTokenOption, tokenOption, wellFormedText } from "./options/option.js";
import { checkTtl, type Policy } from "./options/policy.js";
import type { Clock } from "./platform/clock.js";
import { DeadlineHeap } from "./platform/deadline-heap.js";
import { InFlight } from "./platform/in-flight.js";
import type { Leader } from "./protocol/campaign.js";
import { LockError } from "./protocol/errors.js";
import type { Finding, Fleet, FleetMembers, FleetState, MemberChange, ReconfigureOptions } from "./protocol/fleet.js";
import type { FleetsState } from "./protocol/fleets.js";
import type { ForcedRelease, HeldResources, Inspection, ListHeldOptions, NodeInspection } from "./protocol/inspection.js";
import type { Lease } from "./protocol/lease.js";
import type { AcquireOptions, Attempted, KeepOptions, Locker, Resources, TryAcquireOptions } from "./protocol/locker.js";
import { LeastToken } from "./protocol/token.js";
import { RoutineCalls } from "./routine-calls.js";
import type { WaitContext } from "./waiting/context.js";
import { FirstContact } from "./waiting/first-contact.js";
import { LocalQueue } from "./waiting/local-queue.js";
import { QueuedResources } from "./waiting/queued-resources.js";
import { closeWaiters, LookTimer } from "./waiting/wait-budget.js";
import { AcquireCalls } from "./waiting/wait-for-lease.js";

export class QuorumLocker extends RoutineCalls implements Locker {
  readonly #fleet: Fleet;
  readonly #context: WaitContext;
  readonly #firstContact: FirstContact;
  readonly #calls: AcquireCalls;
  readonly #adoptions: Adoptions;
  #closing: Promise<void> | undefined;

  constructor(fleet: Fleet, policy: Policy, clock: Clock) {
    super();
    const queuedResources = new QueuedResources(clock);
    const present = () => ({ nodes: fleet.nodes, policy: policyFor(fleet.nodes.length, policy), fleetMaxTtlMs: fleet.maxTtlMs });
    const context: WaitContext = {
      ...present(),
      fleet: fleet.name,
      clock,
      deadlines: new DeadlineHeap(clock),
      inFlight: new InFlight(),
      leastToken: new LeastToken(),
      elsewhere: fleet.elsewhere,
      untilHeard: fleet.untilHeard,
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
    this.#adoptions = new Adoptions(context);
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

  waitFor(request: LeaseRequest): Promise<HeldLease> {
    return this.#calls.waitFor(request);
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

  async adopt(text: string, options?: KeepOptions): Promise<Lease> {
    const keeping = readAdoptOptions(options);
    const { policy, waiters } = this.#context;
    const handedOver = readHandOver(text);
    const { namespace, resources, ttlMs } = handedOver;
    if (namespace !== policy.namespace) throw new RangeError(`this lease belongs to namespace ${namespace}, not ${policy.namespace}`);
    checkTtl(policy, ttlMs);
    await this.#begin(resources);
    this.#context.checkFleetTtl(ttlMs);
    return this.#adoptions.adopt(handedOver, {
      ...keeping,
      check: () => {
        if (waiters.closed) throw closedError(resources);
      },
    });
  }

  async inspect(resource: string): Promise<Inspection> {
    readResource(resource);
    await this.#begin([resource]);
    checkHere(this.#context, [resource]);
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
    checkHere(this.#context, [resource]);
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
    if (resource === undefined) return highestToken(this.#context, this.#unused, { atLeast, isAnywhere: true });
    checkHere(this.#context, [resource]);
    return highestToken(this.#context, resource, { atLeast });
  }

  /** Of one of several fleets: from now on it grants only tokens above this one. */
  async raiseFloor(token: number): Promise<void> {
    await this.#begin([]);
    await highestToken(this.#context, this.#unused, { atLeast: token, isAnywhere: true });
  }

  async fleets(): Promise<FleetsState> {
    const { members, generation } = await this.members();
    return { version: this.#fleet.listing.list?.version ?? 0, fleets: [{ name: "", state: "used", generation, members }] };
  }

  async changeFleets(): Promise<FleetsState> {
    throw new TypeError("this locker was given nodes: only one that was given fleets, by name, can change their list");
  }

  async mark(name: string, atLeast: number): Promise<number> {
    wellFormedText("name", name, 1_024);
    if (atLeast !== 0) tokenOption(atLeast);
    await this.#begin([]);
    return raiseMark(this.#context, this.#fleet, { name, atLeast });
  }

  /** Of a fleet to which something moves, which does not serve it yet. */
  async carryMark(name: string, atLeast: number): Promise<void> {
    await this.#begin([]);
    await raiseMark(this.#context, this.#fleet, { name, atLeast, isAnywhere: true });
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
    const limits = readChangeLimits(options);
    await this.#begin([]);
    return this.#fleet.reconfigure(asked, limits);
  }

  async foundWithout(absent: readonly string[]): Promise<FleetMembers> {
    const names = readNames(absent);
    if (!this.#firstContact.isDone) await this.#firstContact.wait();
    if (this.#context.waiters.closed) throw closedError([]);
    return this.#fleet.foundWithout(names);
  }

  protected get waiting(): WaitContext {
    return this.#context;
  }

  get #unused(): string {
    return `palisade/any/${this.#context.clock.secret()}`;
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
