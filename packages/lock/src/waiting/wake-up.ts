// When a caller that waits for a held resource asks again. With a ticket on a quorum of nodes that
// can tell it, it sleeps until a quorum tells that it is the next one; a look at one node now and
// then, and asking now and then, make up for what was not told. Without, all nodes are polled.
//
// A node tells two: the first in the queue, for which the lock is reserved, and the one behind it,
// the backup, which looks whether the first one came. At the end: all delays of waiting, pure; chance
// comes in as a number from 0 to 1.
import { createHash } from "node:crypto";
import { type Lost, retryAfterMs } from "../lease/context.js";
import { releaseOn } from "../lease/release.js";
import { ROLL_CALL, type Wait } from "../protocol/node.js";
import type { Place, WaitContext } from "./context.js";
import type { WaitBudget } from "./wait-budget.js";

/** Timers have whole milliseconds, and may fire by a part of one too early. */
const TIMER_MS = 1;
const NEVER = Number.POSITIVE_INFINITY;

interface Waiting {
  readonly budget: WaitBudget;
  /** Left by the caller before. */
  readonly place?: Place | undefined;
}

export class WakeUp {
  readonly #context: WaitContext;
  readonly #budget: WaitBudget;
  readonly #resources: readonly string[];
  readonly #ticket: string;
  readonly #sinceMs: number;
  readonly #beganAt: number;
  #stops: (() => void)[] = [];
  /** Nodes, by index, that told this waiter that it is the first, or anything at all. */
  readonly #toldFirst = new Set<number>();
  readonly #told = new Set<number>();
  /** Nodes, by index, that can tell it, and that have a ticket of it, for all that is known. */
  readonly #heard = new Set<number>();
  readonly #tickets = new Set<number>();
  /** When it is worth asking again, and worth looking, because of what was heard. */
  #askAt = NEVER;
  #lookAt = NEVER;
  #failures = 0;
  /** The nodes may have tickets of it. */
  #hasAsked: boolean;
  /** When it asked the last time, by the clock of `#sinceMs`; no two times alike. */
  #askedAtMs = 0;
  /** It asks without having been told: those that were told of a release have not come. */
  #isFound = false;

  constructor(context: WaitContext, resources: readonly string[], { budget, place }: Waiting) {
    this.#context = context;
    this.#budget = budget;
    this.#resources = resources;
    this.#ticket = ticketOf(resources);
    this.#sinceMs = place?.sinceMs ?? context.clock.wallMs();
    this.#beganAt = place?.beganAt ?? context.clock.monotonicMs();
    this.#hasAsked = place !== undefined;
    this.#listen();
    context.onMembers.add(this.#moved);
  }

  #listen(): void {
    for (const resource of this.#resources) {
      for (const [i, node] of this.#context.nodes.entries()) {
        const listener = {
          released: (place: "first" | "backup", askedAtMs: number) => this.#released(i, place, askedAtMs),
          listening: () => this.#listening(i),
          deaf: () => this.#deaf(i),
        };
        this.#stops.push(node.onReleased(resource, listener, this.#ticket));
      }
    }
  }

  /** Other nodes are members. What those that left would say does not count any more. */
  readonly #moved = (): void => {
    this.#stopListening();
    this.#heard.clear();
    this.#tickets.clear();
    this.#forget();
    this.#listen();
    this.#askWithin(spreadDelayMs(this.#context.clock.random()));
  };

  #stopListening(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
  }

  #forget(): void {
    this.#toldFirst.clear();
    this.#told.clear();
    this.#askAt = NEVER;
    this.#lookAt = NEVER;
  }

  /** The nodes are about to be asked: what they told before is used up. */
  asking(): Wait {
    this.#forget();
    this.#hasAsked = true;
    const waitedMs = Math.round(this.#context.clock.monotonicMs() - this.#beganAt);
    this.#askedAtMs = Math.max(this.#askedAtMs + 1, this.#sinceMs + waitedMs);
    return { sinceMs: this.#sinceMs, waitedMs: this.#askedAtMs - this.#sinceMs, ticket: this.#ticket };
  }

  /** Sleeps until it is worth asking again. */
  async sleep(lost: Lost): Promise<void> {
    const { clock, nodes, policy } = this.#context;
    for (const [i, { name }] of nodes.entries()) {
      const ballot = lost.ballots.find(({ node }) => node === name);
      if (ballot?.kind === "held" && ballot.hasTicket && this.#heard.has(i)) this.#tickets.add(i);
      else if (ballot !== undefined) this.#tickets.delete(i);
    }
    // Held by others on all nodes that answered: they will tell, or run out. Anything else (this
    // caller had part of it, too few answered, it took too long) may change in a moment, but may
    // also be this caller's own doing: back off, further each time.
    const isPlainlyHeld = lost.reason === "held" && lost.grants === 0;
    // Of several that found it free at once each may have had a part: one of them has it soon.
    if (isPlainlyHeld) this.#isFound = false;
    if (isPlainlyHeld && this.#isHeard()) return this.#watch(lost);
    let forMs = safetyPollMs(policy.retry, clock.random());
    if (!isPlainlyHeld) forMs = Math.min(forMs, this.#backOffMs());
    const freeInMs = retryAfterMs(lost, policy);
    if (freeInMs !== undefined) forMs = Math.min(forMs, afterExpiryMs(freeInMs, clock.random()));
    const news = Math.min(this.#askAt, this.#lookAt) - clock.monotonicMs();
    await this.#budget.sleep(Math.max(0, Math.min(forMs, news)));
    if (isPlainlyHeld) this.#isFound = this.#isUnprompted();
  }

  /** Asks although it was told nothing: should it win, those that were told have not come. */
  #isUnprompted(): boolean {
    return this.#context.clock.monotonicMs() + TIMER_MS < Math.min(this.#askAt, this.#lookAt);
  }

  // Looks at one of the nodes, in turn, and returns when nobody holds it any more, or somebody who
  // would not tell; when a quorum has told that this is the next one; and in time for its tickets.
  async #watch(lost: Lost): Promise<void> {
    const { clock, looks, nodes, policy } = this.#context;
    const resource = lost.ballots.find((ballot) => ballot.kind === "held")?.resource ?? "";
    const seeing = [...nodes];
    let free = this.#whenFree(isReservedIn(lost), retryAfterMs(lost, policy) ?? NEVER);
    const endsAt = clock.monotonicMs() + refreshMs(clock.random());
    let routineAt = clock.monotonicMs() + lookMs(policy.size, policy.retry, clock.random());
    while (seeing.length > 0) {
      const now = clock.monotonicMs();
      const dueAt = Math.min(this.#askAt, endsAt);
      const lookAt = Math.min(this.#lookAt, free.lookAt);
      const moment = await looks.sleep(this.#budget, routineAt, Math.max(0, Math.min(dueAt, lookAt) - now));
      const later = clock.monotonicMs() + TIMER_MS;
      this.#isFound = this.#isUnprompted();
      if (this.#budget.isOver || later >= Math.min(this.#askAt, endsAt)) return;
      if (moment === undefined && later < Math.min(this.#lookAt, free.lookAt)) continue;
      const isSecond = later >= this.#lookAt;
      const place = (moment ?? Math.floor(clock.random() * nodes.length)) % seeing.length;
      this.#lookAt = NEVER;
      const ballot = await seeing[place]?.inspect(resource);
      routineAt = clock.monotonicMs() + lookMs(policy.size, policy.retry, clock.random());
      if (ballot?.kind !== "seen") {
        seeing.splice(place, 1);
        continue;
      }
      // Neither the first nor the second in the queue has come. Of a holder whose time ran out no
      // process was told.
      this.#isFound = ballot.holder === null && !isSecond && !free.isEnding;
      const isReserved = ballot.isReserved === true;
      if (!isReserved && (ballot.holder === null || !ballot.hasWaiters)) return;
      free = this.#whenFree(isReserved, ballot.remainingMs ?? 0);
    }
  }

  /**
   * When to look at what was seen to be held now for so long: a moment before its end, and at its
   * end. Held a moment before, it has run out; else it was released, and those that were told have
   * not come. What is released between the two is reserved at its end.
   */
  #whenFree(isReserved: boolean, inMs: number): { readonly lookAt: number; readonly isEnding: boolean } {
    const { clock } = this.#context;
    const now = clock.monotonicMs();
    if (isReserved) return { lookAt: now + afterExpiryMs(afterReservationMs(), clock.random()), isEnding: false };
    const isEnding = inMs <= beforeExpiryMs();
    return { lookAt: now + (isEnding ? afterExpiryMs(inMs, clock.random()) : inMs - beforeExpiryMs()), isEnding };
  }

  /** Would a quorum tell this waiter when it is the next one? */
  #isHeard(): boolean {
    return this.#tickets.size >= this.#context.policy.quorum;
  }

  #askWithin(inMs: number): void {
    this.#askAt = Math.min(this.#askAt, this.#context.clock.monotonicMs() + inMs);
    this.#budget.wakeWithin(inMs);
  }

  /** For the next caller of this process that wants the same. */
  get place(): Place | undefined {
    return this.#hasAsked ? { sinceMs: this.#sinceMs, beganAt: this.#beganAt } : undefined;
  }

  /**
   * The caller has the lock. If it had found it free, the first in the queue and the second one
   * stand still, and perhaps more behind them: each would cost another look.
   */
  won(): void {
    if (this.#isFound) releaseOn(this.#context, { resources: this.#resources, owner: ROLL_CALL, tells: true }, () => true);
  }

  /** `isUsed`: the caller has the lock, or another one of its process has its place. */
  stop(isUsed: boolean): void {
    this.#context.onMembers.delete(this.#moved);
    this.#stopListening();
    if (isUsed || !this.#hasAsked) return;
    const { inFlight, nodes } = this.#context;
    for (const node of nodes) {
      inFlight.begin();
      void node.leave(this.#resources, this.#ticket).then(() => inFlight.end());
    }
  }

  // One node alone may be late, with the lock held again on the others. A quorum that says "first"
  // is a quorum of free nodes that wait for this caller. A quorum of which some say "backup" serves
  // another one first. Less than that, for long: the nodes do not agree on who is the first.
  #released(node: number, place: "first" | "backup", askedAtMs: number): void {
    const { clock, policy } = this.#context;
    // Of what it asked before: other nodes told so earlier, and it has asked this one again since.
    if (askedAtMs !== this.#askedAtMs) return;
    if (place === "first") this.#toldFirst.add(node);
    this.#told.add(node);
    // The ticket is used up.
    if (place === "first") this.#tickets.delete(node);
    if (this.#toldFirst.size >= policy.quorum) {
      this.#failures = 0;
      this.#askWithin(0);
    } else if (this.#told.size >= policy.quorum) {
      this.#askAt = NEVER;
      const inMs = backupDelayMs(clock.random());
      this.#lookAt = Math.min(this.#lookAt, clock.monotonicMs() + inMs);
      this.#budget.wakeWithin(inMs);
    } else if (this.#toldFirst.size === 1) {
      this.#askWithin(disagreementDelayMs(clock.random()));
    }
  }

  // What was published before is lost, and perhaps the ticket: ask when enough nodes can tell.
  #listening(node: number): void {
    this.#heard.add(node);
    if (!this.#isHeard() && this.#heard.size === this.#context.policy.quorum) this.#askWithin(0);
  }

  #deaf(node: number): void {
    const { clock, policy } = this.#context;
    const wasHeard = this.#isHeard();
    this.#heard.delete(node);
    this.#tickets.delete(node);
    if (wasHeard && !this.#isHeard()) this.#askWithin(safetyPollMs(policy.retry, clock.random()));
  }

  #backOffMs(): number {
    this.#failures++;
    return backOffMs(this.#failures, this.#context.policy.retry, this.#context.clock.random());
  }
}

/**
 * Callers of one process that want other sets of resources have tickets of their own: what one
 * gives up or wins must not be another's. For the same set the same: a new one replaces the old.
 */
function ticketOf(resources: readonly string[]): string {
  if (resources.length === 1) return "";
  const set = JSON.stringify([...resources].sort());
  return `:${createHash("sha256").update(set).digest("base64url").slice(0, 11)}`;
}

function isReservedIn({ ballots }: Lost): boolean {
  return ballots.some((ballot) => ballot.kind === "held" && ballot.isReserved);
}

/** The bounds of a back-off. */
interface BackOff {
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

/** How long a node keeps a released lock for the first in the queue (queue.lua). */
export const RESERVED_MS = 40;
/** How long a node keeps a ticket that is not asked for again (claim.lua). */
export const TICKET_MS = 90_000;

/** After which nodes that tell different waiters that they are first are asked all the same. */
export function disagreementDelayMs(chance: number): number {
  return RESERVED_MS * (0.4 + 0.3 * chance);
}

/** When the one behind the first in the queue looks whether that one came. */
export function backupDelayMs(chance: number): number {
  return RESERVED_MS * (1.2 + 0.3 * chance);
}

/**
 * When a waiter that was refused because the lock was reserved looks whether it was taken: late,
 * since one that was told comes first.
 */
export function afterReservationMs(): number {
  return 3 * RESERVED_MS;
}

/**
 * How long before a holder's time is over a waiter looks whether it is held still. A release after
 * that look is seen at the end, by its reservation.
 */
export function beforeExpiryMs(): number {
  return RESERVED_MS / 2;
}

/** When a waiter asks again so that its tickets stay. */
export function refreshMs(chance: number): number {
  return TICKET_MS * (0.3 + 0.1 * chance);
}

const WIDEST_MS = 50;

/** The delay of one of many that the same event wakes, so that their requests do not meet. */
export function spreadDelayMs(chance: number): number {
  return chance * WIDEST_MS;
}

/**
 * The delay after so many lost votes or failed rounds in a row (1, 2, …): the window doubles, and
 * the random part ends a series of collisions.
 */
export function backOffMs(failures: number, retry: BackOff, chance: number): number {
  const windowMs = Math.min(retry.maxDelayMs, retry.minDelayMs * 2 ** Math.min(failures - 1, 30));
  return windowMs * (0.1 + 0.9 * chance);
}

/** How long a waiter sleeps without a notice. */
export function safetyPollMs(retry: BackOff, chance: number): number {
  return retry.maxDelayMs * (0.5 + 0.5 * chance);
}

/**
 * Milliseconds times nodes, so that every node is asked equally often, however many there are: a
 * look at one node costs it five commands (the call, and four in the script), so a waiter costs
 * each node less than one a second.
 */
const LOOK_MS = 6_000;

/**
 * How long a waiter that would be notified by a quorum sleeps before it looks at one of the nodes.
 */
export function lookMs(nodes: number, retry: BackOff, chance: number): number {
  return Math.max(safetyPollMs(retry, chance), (LOOK_MS / nodes) * (0.9 + 0.2 * chance));
}

/**
 * How long to sleep for a lock that runs out in so many milliseconds: a little longer, since nodes
 * expire in whole milliseconds, and spread over its waiters.
 */
export function afterExpiryMs(freeInMs: number, chance: number): number {
  return freeInMs + 1 + 3 * chance;
}
