// When a caller that waits for a held resource asks again. With a ticket on a quorum of nodes that
// can tell it, it sleeps until a quorum tells that it is the next one; a look at one node now and
// then, and asking now and then, make up for what was not told. Without, all nodes are polled. What
// the nodes told is kept by heard.ts. At the end: all delays of waiting, pure; chance comes in as a
// number from 0 to 1.
import { createHash } from "node:crypto";
import type { Since } from "../lease/local-queue.js";
import { type LockerState, type Lost, retryAfterMs } from "../lease/state.js";
import { RESERVED_MS, TICKET_MS, type Wait } from "../protocol/verbs.js";
import { hear, isToldByQuorum, type News, nothingHeard } from "./heard.js";
import type { LookTimer, WaitBudget } from "./wait-budget.js";

/** Timers have whole milliseconds, and may fire by a part of one too early. */
const TIMER_MS = 1;
const NEVER = Number.POSITIVE_INFINITY;

interface Waiting {
  readonly budget: WaitBudget;
  readonly looks: LookTimer;
  /** Left by the caller before. */
  readonly since?: Since | undefined;
}

export class WakeUp {
  readonly #locker: LockerState;
  readonly #budget: WaitBudget;
  readonly #looks: LookTimer;
  readonly #resources: readonly string[];
  readonly #ticket: string;
  readonly #sinceMs: number;
  readonly #beganAt: number;
  #stops: (() => void)[] = [];
  #heard = nothingHeard(0);
  /** When it is worth asking again, and worth looking, because of what was heard. */
  #askAt = NEVER;
  #lookAt = NEVER;
  #failures = 0;
  /** The nodes may have tickets of it. */
  #hasAsked: boolean;
  /** When it asked the last time, by the clock of `#sinceMs`; no two times alike. */
  #askedAtMs = 0;
  /** It asks without having been told: those that were told of a release have not come. */
  #queueStandsStill = false;

  constructor(locker: LockerState, resources: readonly string[], { budget, looks, since }: Waiting) {
    this.#locker = locker;
    this.#budget = budget;
    this.#looks = looks;
    this.#resources = resources;
    this.#ticket = ticketOf(resources);
    this.#sinceMs = since?.sinceMs ?? locker.clock.wallMs();
    this.#beganAt = since?.beganAt ?? locker.clock.monotonicMs();
    this.#hasAsked = since !== undefined;
    this.#listen();
    locker.onMembers.add(this.#moved);
  }

  /** The nodes are about to be asked. */
  asking(): Wait {
    this.#hear({ kind: "asking" });
    this.#askAt = NEVER;
    this.#lookAt = NEVER;
    this.#hasAsked = true;
    const waitedMs = Math.round(this.#locker.clock.monotonicMs() - this.#beganAt);
    this.#askedAtMs = Math.max(this.#askedAtMs + 1, this.#sinceMs + waitedMs);
    return { sinceMs: this.#sinceMs, waitedMs: this.#askedAtMs - this.#sinceMs, ticket: this.#ticket };
  }

  /** Sleeps until it is worth asking again. */
  async sleep(lost: Lost): Promise<void> {
    const { nodes, policy } = this.#locker;
    const ballots = nodes.map(({ name }) => lost.ballots.find(({ node }) => node === name));
    const tickets = ballots.map((ballot) => (ballot === undefined ? undefined : ballot.kind === "held" && ballot.hasTicket === true));
    this.#hear({ kind: "refused", tickets });
    // Held by others on all nodes that answered: they will tell, or run out. Anything else (this
    // caller had part of it, too few answered, it took too long) may change in a moment, but may
    // also be this caller's own doing: back off, further each time. Of several that found it free at
    // once each may have had a part: one of them has it soon, and how it was found stays.
    const isPlainlyHeld = lost.reason === "held" && lost.grants === 0;
    if (isPlainlyHeld && isToldByQuorum(this.#heard, policy.quorum)) this.#queueStandsStill = await this.#watch(lost);
    else if (isPlainlyHeld) this.#queueStandsStill = await this.#poll(lost);
    else await this.#poll(lost, ++this.#failures);
  }

  /** Sleeps until it is time to ask all nodes again, or news came; true if none came. */
  async #poll(lost: Lost, failures = 0): Promise<boolean> {
    const { clock, policy } = this.#locker;
    let forMs = safetyPollMs(policy.retry, clock.random());
    if (failures > 0) forMs = Math.min(forMs, backOffMs(failures, policy.retry, clock.random()));
    const freeInMs = retryAfterMs(lost, policy);
    if (freeInMs !== undefined) forMs = Math.min(forMs, afterExpiryMs(freeInMs, clock.random()));
    const news = Math.min(this.#askAt, this.#lookAt) - clock.monotonicMs();
    await this.#budget.sleep(Math.max(0, Math.min(forMs, news)));
    return this.#isUnprompted();
  }

  // Looks at one of the nodes, in turn, and returns when nobody holds it any more, or somebody who
  // would not tell; when a quorum has told that this is the next one; and in time for its tickets.
  // Wakes at the earliest of four moments:
  //   endsAt       its tickets are to be asked for again;
  //   #askAt       it was told to ask (`#hear`);
  //   free.lookAt  what was seen may be free by now (`#whenFree`); or #lookAt: as the backup it looks
  //                whether the first in the queue came;
  //   routineAt    nothing was told for long.
  // The first two end it, the others look. The answer: whether the queue stands still.
  async #watch(lost: Lost): Promise<boolean> {
    const { clock, nodes, policy } = this.#locker;
    const resource = lost.ballots.find((ballot) => ballot.kind === "held")?.resource ?? "";
    const seeing = [...nodes];
    let free = this.#whenFree(isReservedIn(lost), retryAfterMs(lost, policy) ?? NEVER);
    const endsAt = clock.monotonicMs() + refreshMs(clock.random());
    let routineAt = clock.monotonicMs() + lookMs(policy.size, policy.retry, clock.random());
    let standsStill = false;
    while (seeing.length > 0) {
      const now = clock.monotonicMs();
      const dueAt = Math.min(this.#askAt, endsAt);
      const lookAt = Math.min(this.#lookAt, free.lookAt);
      const moment = await this.#looks.sleep(this.#budget, routineAt, Math.max(0, Math.min(dueAt, lookAt) - now));
      const later = clock.monotonicMs() + TIMER_MS;
      standsStill = this.#isUnprompted();
      if (this.#budget.isOver || later >= Math.min(this.#askAt, endsAt)) break;
      if (moment === undefined && later < Math.min(this.#lookAt, free.lookAt)) continue;
      const isBackup = later >= this.#lookAt;
      const index = (moment ?? Math.floor(clock.random() * nodes.length)) % seeing.length;
      this.#lookAt = NEVER;
      const ballot = await seeing[index]?.ask("inspect", { resources: [resource] });
      routineAt = clock.monotonicMs() + lookMs(policy.size, policy.retry, clock.random());
      if (ballot?.kind !== "seen") {
        seeing.splice(index, 1);
        continue;
      }
      // Neither the first nor the second in the queue has come. Of a holder whose time ran out no
      // process was told.
      standsStill = ballot.holder === null && !isBackup && !free.isAtEnd;
      const isReserved = ballot.isReserved === true;
      if (!isReserved && (ballot.holder === null || !ballot.hasWaiters)) break;
      free = this.#whenFree(isReserved, ballot.remainingMs ?? 0);
    }
    return standsStill;
  }

  /** Asks although it was told nothing: should it win, those that were told have not come. */
  #isUnprompted(): boolean {
    return this.#locker.clock.monotonicMs() + TIMER_MS < Math.min(this.#askAt, this.#lookAt);
  }

  /**
   * When to look at what was seen to be held now for so long: a moment before its end, and at its
   * end. Held a moment before, it has run out; else it was released, and those that were told have
   * not come. What is released between the two is reserved at its end.
   */
  #whenFree(isReserved: boolean, inMs: number): { readonly lookAt: number; readonly isAtEnd: boolean } {
    const { clock } = this.#locker;
    const now = clock.monotonicMs();
    if (isReserved) return { lookAt: now + afterExpiryMs(afterReservationMs(), clock.random()), isAtEnd: false };
    const isAtEnd = inMs <= beforeExpiryMs();
    return { lookAt: now + (isAtEnd ? afterExpiryMs(inMs, clock.random()) : inMs - beforeExpiryMs()), isAtEnd };
  }

  /** For the next caller of this process that wants the same; undefined: the nodes were not asked. */
  get since(): Since | undefined {
    return this.#hasAsked ? { sinceMs: this.#sinceMs, beganAt: this.#beganAt } : undefined;
  }

  /**
   * The caller has the lock. If it had found it free, the first in the queue and the second one
   * stand still, and perhaps more behind them: each would cost another look.
   */
  won(): void {
    if (this.#queueStandsStill) this.#tellAll("callRoll");
  }

  /** `isUsed`: the caller has the lock, or another one of its process goes on in its stead. */
  stop(isUsed: boolean): void {
    this.#locker.onMembers.delete(this.#moved);
    this.#stopListening();
    if (!isUsed && this.#hasAsked) this.#tellAll("leave");
  }

  #tellAll(verb: "leave" | "callRoll"): void {
    const { inFlight, nodes } = this.#locker;
    const question = { resources: this.#resources, ticket: this.#ticket };
    for (const node of nodes) {
      inFlight.begin();
      void node.ask(verb, question).then(() => inFlight.end());
    }
  }

  #listen(): void {
    const { nodes } = this.#locker;
    this.#heard = nothingHeard(nodes.length);
    for (const resource of this.#resources) {
      for (const [index, node] of nodes.entries()) {
        const listener = {
          released: (rank: "first" | "backup", askedAtMs: number) => {
            // Of what it asked before: other nodes told so earlier, and it has asked this one again since.
            if (askedAtMs === this.#askedAtMs) this.#hear({ kind: "told", node: index, rank });
          },
          listening: () => this.#hear({ kind: "listening", node: index }),
          deaf: () => this.#hear({ kind: "deaf", node: index }),
        };
        this.#stops.push(node.onReleased(resource, listener, this.#ticket));
      }
    }
  }

  #stopListening(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
  }

  /** Other nodes are members. What those that left would say does not count any more. */
  readonly #moved = (): void => {
    this.#stopListening();
    this.#askAt = NEVER;
    this.#lookAt = NEVER;
    this.#listen();
    this.#askWithin(spreadDelayMs(this.#locker.clock.random()));
  };

  #hear(news: News): void {
    const { clock, policy } = this.#locker;
    const [heard, consequence] = hear(this.#heard, news, policy.quorum);
    this.#heard = heard;
    if (consequence === "turn") {
      this.#failures = 0;
      this.#askWithin(0);
    } else if (consequence === "backup") {
      this.#askAt = NEVER;
      const inMs = backupDelayMs(clock.random());
      this.#lookAt = Math.min(this.#lookAt, clock.monotonicMs() + inMs);
      this.#budget.wakeWithin(inMs);
    } else if (consequence === "disagreement") this.#askWithin(disagreementDelayMs(clock.random()));
    else if (consequence === "listening") this.#askWithin(0);
    else if (consequence === "deaf") this.#askWithin(safetyPollMs(policy.retry, clock.random()));
  }

  #askWithin(inMs: number): void {
    this.#askAt = Math.min(this.#askAt, this.#locker.clock.monotonicMs() + inMs);
    this.#budget.wakeWithin(inMs);
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
