// When a caller that waits for a held resource asks again. With a ticket on a quorum of nodes that
// can tell it, it sleeps until a quorum tells that what it wants is reserved for it; a look at one node
// now and then, and when the time of the holder or of a reservation is over, and asking now and then,
// make up for what was not told. Without, all nodes are polled. What the nodes told is kept by heard.ts.
// At the end: all delays of waiting, pure; chance comes in as a number from 0 to 1.
import { createHash } from "node:crypto";
import type { HeldLease } from "../lease/held-lease.js";
import type { Since } from "../lease/local-queue.js";
import { type LockerState, type Lost, retryAfterMs } from "../lease/state.js";
import { LONGEST_PART_MS, TICKET_MS, type Wait } from "../protocol/verbs.js";
import { hear, isToldByQuorum, type News, nothingHeard } from "./heard.js";
import type { LookTimer, WaitBudget } from "./wait-budget.js";

/** Timers have whole milliseconds, and may fire by a part of one too early. */
const TIMER_MS = 1;
/** What was published before an answer was sent comes within so long. */
const NEWS_MS = 50;
const NEVER = Number.POSITIVE_INFINITY;

interface Waiting {
  readonly budget: WaitBudget;
  readonly looks: LookTimer;
  /** When it was the first of its process. */
  readonly beganAt: number;
  /** Left by the caller before. */
  readonly since: Since | undefined;
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
  #reserveMs = 0;
  /** What it has asked in its sleep, in the place of a lease of this process. */
  #asked: Promise<HeldLease | Lost> | undefined;
  #follows: string | undefined;
  /** The nodes may have tickets of it. */
  #hasAsked: boolean;
  /** When it asked the last time, by the clock of `#sinceMs`; no two times alike. */
  #askedAtMs = 0;

  constructor(locker: LockerState, resources: readonly string[], { budget, looks, beganAt, since }: Waiting) {
    const { clock, onMembers } = locker;
    this.#locker = locker;
    this.#budget = budget;
    this.#looks = looks;
    this.#resources = resources;
    this.#ticket = ticketOf(resources);
    this.#beganAt = since?.beganAt ?? beganAt;
    this.#sinceMs = since?.sinceMs ?? Math.round(clock.wallMs() - (clock.monotonicMs() - beganAt));
    this.#hasAsked = since !== undefined;
    this.#listen();
    onMembers.add(this.#onMembers);
  }

  /** The nodes are about to be asked. */
  asking(): Wait {
    const { nodes, policy } = this.#locker;
    this.#hear({ kind: "asking" });
    this.#askAt = NEVER;
    this.#lookAt = NEVER;
    this.#hasAsked = true;
    this.#askedAtMs = Math.max(this.#askedAtMs + 1, this.#sinceMs + Math.round(this.#waitedMs));
    this.#reserveMs = reserveMs(
      nodes.map(({ roundTripMs }) => roundTripMs),
      policy,
    );
    const waitedMs = this.#askedAtMs - this.#sinceMs;
    const follows = this.#follows;
    this.#follows = undefined;
    return { sinceMs: this.#sinceMs, waitedMs, ticket: this.#ticket, reserveMs: this.#reserveMs, follows };
  }

  /** A lease of this process is about to be given back: who sleeps asks in its place, and wakes. */
  follow(owner: string, ask: () => Promise<HeldLease | Lost>): void {
    if (!this.#budget.isAsleep) return;
    this.#follows = owner;
    this.#asked = ask();
    this.#budget.wake();
  }

  /** Once. */
  asked(): Promise<HeldLease | Lost> | undefined {
    const asked = this.#asked;
    this.#asked = undefined;
    return asked;
  }

  /** Sleeps until it is worth asking again. */
  async sleep(lost: Lost): Promise<void> {
    const { nodes, policy } = this.#locker;
    const ballots = nodes.map(({ name }) => lost.ballots.find(({ node }) => node === name));
    const tickets = ballots.map((ballot) => (ballot === undefined ? undefined : ballot.kind === "held" && ballot.place !== undefined));
    this.#hear({ kind: "refused", tickets });
    // Held by others on all nodes that answered: they will tell, or run out. Anything else (this
    // caller had part of it, too few answered, it took too long) may change in a moment, but may
    // also be this caller's own doing: back off, further each time.
    const isPlainlyHeld = lost.reason === "held" && lost.grants === 0;
    if (isPlainlyHeld && isToldByQuorum(this.#heard, policy.quorum)) await this.#watch(lost);
    else await this.#poll(lost, isPlainlyHeld ? 0 : ++this.#failures);
  }

  /** Sleeps until it is time to ask all nodes again, or news came. */
  async #poll(lost: Lost, failures: number): Promise<void> {
    const { clock, policy } = this.#locker;
    let forMs = safetyPollMs(policy.retry, clock.random());
    if (failures > 0) forMs = Math.min(forMs, backOffMs(failures, policy.retry, clock.random()));
    const freeInMs = retryAfterMs(lost, policy);
    if (freeInMs !== undefined) forMs = Math.min(forMs, afterExpiryMs(freeInMs, clock.random()));
    const news = Math.min(this.#askAt, this.#lookAt) - clock.monotonicMs();
    await this.#budget.sleep(Math.max(0, Math.min(forMs, news)));
  }

  // Sleeps until it is worth asking again. Wakes at the earliest of five moments:
  //   endsAt     ends   its tickets, or the part that is kept of a set, are to be asked for again
  //   #askAt     ends   it was told to ask (`#hear`)
  //   #lookAt    looks  what was told to be reserved for another may be free by now; a set: ends
  //   freeAt     looks  what was seen may be free by now
  //   routineAt  looks  nothing was told for long
  // A look is at one node, in turn. It ends the sleep where nobody holds the lock any more, or the
  // ticket is gone.
  async #watch(lost: Lost): Promise<void> {
    const { clock, nodes, policy } = this.#locker;
    const isSet = this.#resources.length > 1;
    const refusals = lost.ballots.filter((ballot) => ballot.kind === "held");
    const resource = refusals[0]?.resource ?? "";
    const place = Math.min(...refusals.map((ballot) => ballot.place ?? NEVER));
    // The next and the last look when a reservation is over: who only sees one, behind the next, leaves
    // them as long again.
    const freeAfter = (isReserved: boolean, heldMs: number): number =>
      clock.monotonicMs() +
      (isReserved
        ? afterReservationMs((place === 1 ? 1 : 2) * this.#reserveMs, clock.random())
        : afterExpiryMs(heldMs, clock.random()) + laterAtExpiryMs(place, clock.random()));
    const routineAfter = (): number => clock.monotonicMs() + lookMs(policy.size, policy.retry, clock.random());
    const seeing = [...nodes.keys()];
    const endsInMs = isSet ? keepAgainMs(this.#waitedMs, this.#reserveMs) : refreshMs(clock.random());
    const endsAt = clock.monotonicMs() + endsInMs;
    let freeAt = freeAfter(
      refusals.some(({ isReserved }) => isReserved),
      retryAfterMs(lost, policy) ?? NEVER,
    );
    let routineAt = routineAfter();
    while (seeing.length > 0) {
      const dueAt = Math.min(this.#askAt, endsAt, this.#lookAt, freeAt);
      const moment = await this.#looks.sleep(this.#budget, routineAt, Math.max(0, dueAt - clock.monotonicMs()));
      const later = clock.monotonicMs() + TIMER_MS;
      if (this.#asked !== undefined || this.#budget.isOver || later >= Math.min(this.#askAt, endsAt)) return;
      if (moment === undefined && later < Math.min(this.#lookAt, freeAt)) continue;
      // What a set was told of may be another of its resources than the one that it sees.
      if (isSet && later >= this.#lookAt) return;
      this.#lookAt = NEVER;
      const at = (moment ?? Math.floor(clock.random() * nodes.length)) % seeing.length;
      const node = seeing[at] ?? 0;
      const ballot = await nodes[node]?.ask("inspect", { resources: [resource], ticket: this.#ticket });
      routineAt = routineAfter();
      if (ballot?.kind !== "seen") {
        seeing.splice(at, 1);
        continue;
      }
      if (ballot.isForgotten) return this.#listenAnew(node);
      const isReserved = ballot.isReserved === true;
      if (!isReserved && ballot.holder === null) return;
      freeAt = freeAfter(isReserved, ballot.remainingMs ?? 0);
    }
  }

  /** A node has told this caller, which is on its way; or it has, and the way to here is dead. */
  async #listenAnew(node: number): Promise<void> {
    const isTold = (index: number): boolean => this.#heard[index]?.otherMs !== undefined;
    if (!isTold(node)) await this.#budget.sleep(NEWS_MS);
    if (isTold(node) || this.#budget.isOver) return;
    for (const [i, each] of this.#locker.nodes.entries()) if (!isTold(i)) each.listenAnew();
  }

  get #waitedMs(): number {
    return this.#locker.clock.monotonicMs() - this.#beganAt;
  }

  /** For the next caller of this process that wants the same; undefined: the nodes were not asked. */
  get since(): Since | undefined {
    return this.#hasAsked ? { sinceMs: this.#sinceMs, beganAt: this.#beganAt } : undefined;
  }

  /** `isUsed`: the caller has the lock, or another one of its process goes on in its stead. */
  stop(isUsed: boolean): void {
    const { inFlight, nodes, onMembers } = this.#locker;
    onMembers.delete(this.#onMembers);
    this.#stopListening();
    if (isUsed || !this.#hasAsked) return;
    const question = { resources: this.#resources, ticket: this.#ticket };
    for (const node of nodes) {
      inFlight.begin();
      void node.ask("leave", question).then(() => inFlight.end());
    }
  }

  #listen(): void {
    const { nodes } = this.#locker;
    this.#heard = nothingHeard(nodes.length);
    for (const [index, node] of nodes.entries()) {
      const listener = {
        released: (otherMs: number, askedAtMs: number) => {
          // Of what it asked before: other nodes told so earlier, and it has asked this one again since.
          if (askedAtMs === this.#askedAtMs) this.#hear({ kind: "told", node: index, otherMs });
        },
        listening: () => this.#hear({ kind: "listening", node: index }),
        deaf: () => this.#hear({ kind: "deaf", node: index }),
      };
      this.#stops.push(node.onReleased(this.#ticket, listener));
    }
  }

  #stopListening(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
  }

  /** Other nodes are members. What those that left would say does not count any more. */
  readonly #onMembers = (): void => {
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
    } else if (consequence === "first") this.#askWithin(afterReservationMs(this.#reserveMs, clock.random()));
    else if (consequence === "listening") this.#askWithin(0);
    else if (consequence === "deaf") this.#askWithin(safetyPollMs(policy.retry, clock.random()));
    else if (consequence !== "none") {
      const inMs = afterReservationMs(consequence, clock.random());
      this.#lookAt = clock.monotonicMs() + inMs;
      this.#budget.wakeWithin(inMs);
    }
  }

  #askWithin(inMs: number): void {
    this.#askAt = Math.min(this.#askAt, this.#locker.clock.monotonicMs() + inMs);
    this.#budget.wakeWithin(inMs);
  }
}

/**
 * Callers of one process that want other resources have tickets of their own: what one gives up or
 * wins must not be another's. For the same the same: a new one replaces the old. The first
 * character tells the nodes that it is for several (queue.lua).
 */
function ticketOf(resources: readonly string[]): string {
  const word = createHash("sha256")
    .update(JSON.stringify([...resources].sort()))
    .digest("base64url");
  return `:${resources.length > 1 ? "&" : ""}${word.slice(0, 11)}`;
}

const SHORTEST_RESERVATION_MS = 40;
const RESERVATION_MARGIN_MS = 10;

/**
 * For how long a node is to reserve for a caller what is free: the message and the claim take one round
 * trip, and as much again is for a busy process. That of the quorum's slowest node counts.
 */
export function reserveMs(roundTripsMs: readonly number[], { quorum, nodeTimeoutMs }: { quorum: number; nodeTimeoutMs: number }): number {
  const slowestMs = [...roundTripsMs].sort((a, b) => a - b)[quorum - 1] ?? 0;
  return Math.ceil(Math.max(SHORTEST_RESERVATION_MS, Math.min(nodeTimeoutMs, 2 * slowestMs + RESERVATION_MARGIN_MS)));
}

/** When one looks whether those that it is reserved for have come. */
function afterReservationMs(reservedMs: number, chance: number): number {
  return reservedMs + 5 + 10 * chance;
}

/** How many in the queue look at once when a holder's time is over; those behind them come later. */
const FIRST_AT_EXPIRY = 3;

function laterAtExpiryMs(place: number, chance: number): number {
  return place <= FIRST_AT_EXPIRY ? 0 : 20 + Math.min(2_000, 2 * place) * chance;
}

/**
 * When a caller of several asks again, for a part to be kept once more: when a node does that (queue.lua),
 * which keeps it for a quarter of the time that it has waited, and then lets others have it for longer.
 */
function keepAgainMs(waitedMs: number, reservedMs: number): number {
  return 4 * Math.max(4 * reservedMs, Math.min(LONGEST_PART_MS, waitedMs / 4));
}

/** The bounds of a back-off. */
interface BackOff {
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

/** When a waiter asks again so that its tickets stay. */
function refreshMs(chance: number): number {
  return TICKET_MS * (0.3 + 0.1 * chance);
}

const WIDEST_MS = 50;

/** The delay of one of many that the same event wakes, so that their requests do not meet. */
function spreadDelayMs(chance: number): number {
  return chance * WIDEST_MS;
}

/**
 * The delay after so many lost votes or failed rounds in a row (1, 2, …): the window doubles, and
 * the random part ends a series of collisions.
 */
function backOffMs(failures: number, retry: BackOff, chance: number): number {
  const windowMs = Math.min(retry.maxDelayMs, retry.minDelayMs * 2 ** Math.min(failures - 1, 30));
  return windowMs * (0.1 + 0.9 * chance);
}

/** How long a waiter sleeps without a notice. */
function safetyPollMs(retry: BackOff, chance: number): number {
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
function lookMs(nodes: number, retry: BackOff, chance: number): number {
  return Math.max(safetyPollMs(retry, chance), (LOOK_MS / nodes) * (0.9 + 0.2 * chance));
}

/**
 * How long to sleep for a lock that runs out in so many milliseconds: a little longer, since nodes
 * expire in whole milliseconds, and spread over its waiters.
 */
function afterExpiryMs(freeInMs: number, chance: number): number {
  return freeInMs + 1 + 3 * chance;
}
