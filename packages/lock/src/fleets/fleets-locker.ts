// A locker over several fleets: finds the fleet that a resource belongs to, and asks the locker of
// that fleet. A fleet says itself whether it serves a resource, in the step in which its nodes are
// asked; where it does not, the lists are read anew.

import { readHandOver } from "../lease/hand-over.js";
import type { HeldLease } from "../lease/held-lease.js";
import { closedError } from "../lease/messages.js";
import { type FleetsOptions, ofOneKey, readFleetsChange } from "../options/fleets.js";
import { type LeaseRequest, readLeaseRequest, readListHeldOptions, readResources } from "../options/lease-request.js";
import { readChangeLimits, readMemberChange, readNames } from "../options/member-change.js";
import { shown } from "../options/option.js";
import type { Clock } from "../platform/clock.js";
import type { Leader } from "../protocol/campaign.js";
import { LockError } from "../protocol/errors.js";
import type { Finding, FleetMembers, FleetState, MemberChange, ReconfigureOptions } from "../protocol/fleet.js";
import type { FleetsChange, FleetsState } from "../protocol/fleets.js";
import type { ForcedRelease, HeldResources, Inspection, ListHeldOptions, NodeInspection } from "../protocol/inspection.js";
import type { Lease } from "../protocol/lease.js";
import type { AcquireOptions, Attempted, KeepOptions, Locker, Resources, TryAcquireOptions } from "../protocol/locker.js";
import { RoutineCalls } from "../routine-calls.js";
import type { WaitContext } from "../waiting/context.js";
import { closeWaiters, WaitBudget, type Waiters } from "../waiting/wait-budget.js";
import { carryOut, type FleetPart, standingsOf } from "./change-list.js";
import { Elsewhere, Unheard } from "./elsewhere.js";
import { FleetParts, type OpenFleet } from "./fleet-parts.js";
import { planChange } from "./list-plan.js";
import { changeLongest } from "./longest-lease.js";
import { fleetsState, heldIn, listFindings, stateOf } from "./together.js";

/** How soon a resource that moves is asked for again. */
const AGAIN_MS = 50;
/** So often it follows lists that say another home at once. */
const MAX_MOVES = 4;

interface Waiting {
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
}

export class FleetsLocker extends RoutineCalls implements Locker {
  readonly #parts: FleetParts;
  readonly #clock: Clock;
  readonly #waiters: Waiters = { closed: false, sleeping: new Set() };

  constructor(options: FleetsOptions, opening: { readonly open: OpenFleet; readonly clock: Clock }) {
    super();
    this.#clock = opening.clock;
    this.#parts = new FleetParts(options, { ...opening, isClosed: () => this.#waiters.closed });
  }

  async ready(): Promise<FleetState> {
    await this.#contact();
    return stateOf(await Promise.all(this.#parts.used.map(({ locker }) => locker.ready())));
  }

  async acquire(resources: Resources, options?: AcquireOptions): Promise<Lease> {
    return this.waitFor(readLeaseRequest("acquire", this.#parts.policy, { resources, options }));
  }

  async waitFor(request: LeaseRequest): Promise<HeldLease> {
    return this.#at(ofOneKey(request.resources), request, ({ locker }, waitMs) => locker.waitFor({ ...request, waitMs }));
  }

  async tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted> {
    readLeaseRequest("tryAcquire", this.#parts.policy, { resources, options });
    const named = ofOneKey(resources);
    try {
      return await this.#at(named, { waitMs: 0 }, ({ locker }) => locker.tryAcquire(named, options));
    } catch (error) {
      if (!(error instanceof Elsewhere)) throw error;
      return { ok: false, reason: "no_quorum", message: error.message, ballots: [] };
    }
  }

  leader(resource: string): Promise<Leader | null> {
    return this.#of(resource, ({ locker }) => locker.leader(resource));
  }

  async adopt(text: string, options?: KeepOptions): Promise<Lease> {
    const named = ofOneKey(readHandOver(text).resources);
    return this.#at(named, this.#patience, ({ locker }) => locker.adopt(text, options));
  }

  inspect(resource: string): Promise<Inspection> {
    return this.#of(resource, async (part) => {
      const inspection = await part.locker.inspect(resource);
      if (inspection.state === "unknown") await this.#parts.lookAgain();
      if (this.#parts.homeOf(resource) !== part) throw new Elsewhere(`${resource} has moved`, [resource]);
      return { ...inspection, fleet: part.name };
    });
  }

  forceRelease(resource: string, options: { readonly reason: string }): Promise<ForcedRelease> {
    return this.#of(resource, ({ locker }) => locker.forceRelease(resource, options));
  }

  issued(resource: string, token: number): Promise<boolean> {
    return this.#of(resource, ({ locker }) => locker.issued(resource, token));
  }

  async listResources(): Promise<readonly string[]> {
    await this.#contact();
    const lists = await Promise.all(this.#parts.concerned.map(({ locker }) => locker.listResources()));
    return [...new Set(lists.flat())];
  }

  async listHeld(options?: ListHeldOptions): Promise<HeldResources> {
    const asked = readListHeldOptions(options);
    await this.#contact();
    return heldIn(this.#parts.concerned, asked);
  }

  async nodes(): Promise<readonly NodeInspection[]> {
    await this.#contact();
    const nodes = this.#parts.used.map(async ({ locker, name }) => (await locker.nodes()).map((node) => ({ ...node, fleet: name })));
    return (await Promise.all(nodes)).flat();
  }

  async highestToken(resource?: string, atLeast = 0): Promise<number> {
    if (resource !== undefined) return this.#of(resource, ({ locker }) => locker.highestToken(resource, atLeast));
    await this.#contact();
    const parts = this.#parts.concerned;
    const highest = Math.max(...(await Promise.all(parts.map(({ locker }) => locker.highestToken(undefined, atLeast)))));
    // Stored in each of them, so that every later lease of any resource is above it.
    if (highest > 0) await Promise.all(parts.map(({ locker }) => locker.raiseFloor(highest)));
    // The first contact may have been with a fleet that has an older list.
    if (this.#parts.concerned.some((part) => !parts.includes(part))) return this.highestToken(undefined, highest);
    return highest;
  }

  mark(name: string, atLeast: number): Promise<number> {
    return this.#at([name], this.#patience, ({ locker }) => locker.mark(name, atLeast));
  }

  async members(): Promise<FleetMembers> {
    return this.#only("members").locker.members();
  }

  async fleets(): Promise<FleetsState> {
    this.#checkOpen();
    return fleetsState(this.#parts.all, await standingsOf(this.#parts.all));
  }

  async changeFleets(change: FleetsChange, options?: ReconfigureOptions): Promise<FleetsState> {
    const asked = readFleetsChange(change, [...this.#parts.all.keys()]);
    const limits = readChangeLimits(options);
    await Promise.all([...this.#parts.all.values()].map(({ fleet }) => fleet.settled()));
    await carryOut({
      parts: this.#parts.all,
      clock: this.#clock,
      isClosed: () => this.#waiters.closed,
      limits,
      isLost: "remove" in asked && asked.lost !== undefined && asked.lost !== false,
      plan: (standings, forMs) => planChange(standings, asked, forMs),
    });
    return this.fleets();
  }

  async reconfigure(change: MemberChange, { fleet, ...options }: ReconfigureOptions = {}): Promise<FleetMembers> {
    const part = fleet === undefined ? undefined : this.#parts.all.get(fleet);
    if (fleet !== undefined && part === undefined)
      throw new RangeError(`${shown(fleet)} is no fleet of this locker, which has ${[...this.#parts.all.keys()].join(", ")}`);
    const { locker, name } = part ?? this.#only("reconfigure");
    const asked = readMemberChange(change);
    const limits = readChangeLimits(options);
    if (!("maxTtlMs" in asked)) return locker.reconfigure(asked, options);
    await locker.members();
    return changeLongest({ parts: this.#parts.all, clock: this.#clock, name, maxTtlMs: asked.maxTtlMs, limits });
  }

  async foundWithout(absent: readonly string[]): Promise<FleetMembers> {
    const names = readNames(absent);
    const part = [...this.#parts.all.values()].find(({ fleet }) =>
      names.every((named) => fleet.nodes.some(({ name, address }) => name === named || address === named)),
    );
    if (part === undefined) throw new RangeError(`${names.join(", ")} must name nodes of one fleet of this locker`);
    return part.locker.foundWithout(names);
  }

  async doctor(): Promise<readonly Finding[]> {
    this.#checkOpen();
    const list = listFindings(this.#parts.all, await standingsOf(this.#parts.all));
    const found = [...this.#parts.all.values()].map(async ({ locker, name }) => {
      const findings = await locker.doctor();
      return findings.map((finding) => (finding.node === "fleet" ? { ...finding, node: `fleet ${name}` } : finding));
    });
    return [...list, ...(await Promise.all(found)).flat()];
  }

  async close(): Promise<void> {
    closeWaiters(this.#waiters);
    await this.#parts.close();
  }

  protected get waiting(): Pick<WaitContext, "clock" | "policy" | "waiters"> {
    return { clock: this.#clock, policy: this.#parts.policy, waiters: this.#waiters };
  }

  get #patience(): Waiting {
    return { waitMs: this.#parts.policy.waitMs };
  }

  #checkOpen(): void {
    if (this.#waiters.closed) throw closedError([]);
  }

  async #contact(): Promise<void> {
    this.#checkOpen();
    await this.#parts.contact();
    this.#checkOpen();
  }

  #only(call: string): FleetPart {
    const [first, ...more] = this.#parts.all.values();
    if (first !== undefined && more.length === 0) return first;
    throw new TypeError(
      `${call} is about one fleet, and this locker has several: say which in its options; fleets() tells the members of each`,
    );
  }

  async #of<Answer>(resource: string, ask: (part: FleetPart) => Promise<Answer>): Promise<Answer> {
    return this.#at(readResources([resource]), this.#patience, ask);
  }

  /** Asks the fleet that these belong to; again, where that has become another one. */
  async #at<Answer>(
    resources: readonly string[],
    { waitMs, signal }: Waiting,
    ask: (part: FleetPart, leftMs: number) => Promise<Answer>,
  ): Promise<Answer> {
    const [resource = ""] = resources;
    if (this.#waiters.closed || this.#parts.homeOf(resource) === undefined || !this.#parts.hasLooked) await this.#meet(resources, signal);
    const budget = new WaitBudget(this.#clock, this.#waiters, { waitMs, signal });
    for (let tries = 1; ; tries++) {
      budget.check(resources);
      const home = this.#parts.homeOf(resource);
      try {
        if (home === undefined) throw new Elsewhere(`no fleet is known yet to which ${resource} belongs`, resources);
        if (this.#parts.untilHeard(home.fleet) !== undefined) {
          await this.#hear(home, resources, { waitMs: budget.leftMs, signal });
          // The lists may name another one, which was met while they were read.
          if (this.#parts.homeOf(resource) !== home) continue;
        }
        return await ask(home, Math.ceil(budget.leftMs));
      } catch (error) {
        const isElsewhere = error instanceof Elsewhere;
        if (!isElsewhere && !(error instanceof LockError && error.code === "LOCK_NO_QUORUM")) throw error;
        // It was waited for until now.
        if (error instanceof Unheard && budget.leftMs === 0) throw error;
        if (!(await this.#patient({ waitMs: budget.leftMs, signal }).sleepUntil(this.#parts.lookAgain()))) {
          budget.check(resources);
          throw error;
        }
        const isSame = this.#parts.homeOf(resource) === home;
        // What its home cannot do is final; what is elsewhere is waited for while there is time.
        if (isSame && (!isElsewhere || budget.leftMs === 0)) throw error;
        if (tries > MAX_MOVES && budget.leftMs === 0) throw error;
        if (isSame || tries > MAX_MOVES) await budget.sleep(Math.min(AGAIN_MS * Math.min(tries, 10), budget.leftMs));
      }
    }
  }

  /** First contact is no part of waiting for a lock, and ends when no node is left to reach. */
  async #meet(resources: readonly string[], signal: AbortSignal | undefined): Promise<void> {
    const patience = new WaitBudget(this.#clock, this.#waiters, { waitMs: Number.POSITIVE_INFINITY, signal });
    patience.check(resources);
    await patience.sleepUntil(this.#contact());
    patience.check(resources);
    if (!this.#parts.hasLooked) await patience.sleepUntil(this.#parts.firstLook());
  }

  /** Resolves when it may be asked; throws what it waits for where that takes too long. */
  async #hear(home: FleetPart, resources: readonly string[], waiting: Waiting): Promise<void> {
    const patience = this.#patient(waiting);
    for (let heard = this.#parts.untilHeard(home.fleet); heard !== undefined; heard = this.#parts.untilHeard(home.fleet)) {
      if (await patience.sleepUntil(heard)) continue;
      patience.check(resources);
      const why = this.#parts.whyUnheard(home, resources);
      if (why !== undefined) throw why;
    }
  }

  /** waitMs 0 still waits for one answer of the nodes. */
  #patient({ waitMs, signal }: Waiting): WaitBudget {
    const { nodeTimeoutMs } = this.#parts.policy;
    return new WaitBudget(this.#clock, this.#waiters, { waitMs: Math.max(waitMs, nodeTimeoutMs), signal });
  }
}
