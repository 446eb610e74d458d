// For unit tests of code that uses the lock: a locker without Redis. It is the lock itself, over a
// node in memory instead of a fleet; a suite of tests is run over both. Its time is that of the
// global timers and `Date` at the moment of each call, so a test framework's fake timers move it.

import { QuorumLocker } from "./locker.js";
import { type LockerOptions, readPolicy } from "./options/policy.js";
import { type Clock, liveClock } from "./platform/clock.js";
import type { GrantBallot } from "./protocol/ballot.js";
import type { FleetState, NodeReport, OpenFleet, StoredLease } from "./protocol/fleet.js";
import type { Locker } from "./protocol/locker.js";
import type { LockNode, ReleaseListener } from "./protocol/node.js";
import {
  type Answers,
  type BallotOf,
  fingerprintOf,
  type GrantQuestion,
  LONGEST_PART_MS,
  type QuestionOf,
  type Verb,
  type Wait,
} from "./protocol/verbs.js";

const MAX_TTL_MS = 60_000;
const FAKE_REPORT: NodeReport = {
  latencyMs: 0,
  clockAheadMs: 0,
  clockUncertaintyMs: 0,
  version: "fake",
  durable: false,
  memory: { usedBytes: 0, evictionPolicy: "noeviction" },
};

/** The servers of a test: lockers that are given the same ones contend with each other. */
export class FakeServers {
  /** False: every call fails as it does when no server can be reached (`LOCK_NO_QUORUM`). */
  reachable = true;
  readonly #memories = new Map<string, FakeMemory>();

  /**
   * Takes the lock away from its holder, as when its time had run out on the servers. The holder
   * learns of it at its next renewal.
   */
  lose(resource: string, namespace = "palisade"): void {
    this.memoryOf(namespace).locks.delete(resource);
  }

  /** @internal */
  memoryOf(namespace: string): FakeMemory {
    const memory = this.#memories.get(namespace) ?? new FakeMemory();
    this.#memories.set(namespace, memory);
    return memory;
  }
}

/** Options of createLocker, with servers in memory in place of nodes. */
export interface FakeLockerOptions extends Omit<LockerOptions, "nodes" | "quorum"> {
  /** Default: servers that no other locker has. */
  readonly servers?: FakeServers;
}

/**
 * A locker for unit tests: no Redis, no network, and otherwise as createLocker's. Tokens rise from
 * 1. `doctor` finds nothing; members cannot be changed.
 */
export function createFakeLocker({ servers = new FakeServers(), ...options }: FakeLockerOptions = {}): Locker {
  const policy = readPolicy({ ...options, nodes: ["redis://127.0.0.1:6379"] });
  const clock = liveClock();
  const memory = servers.memoryOf(policy.namespace);
  const node = new FakeNode(memory, clock, () => servers.reachable);
  return new QuorumLocker(fleetOf(node, memory, { servers, maxTtlMs: policy.maxTtlMs ?? MAX_TTL_MS }), policy, clock);
}

function fleetOf(
  node: FakeNode,
  memory: FakeMemory,
  { servers, maxTtlMs }: { readonly servers: FakeServers; readonly maxTtlMs: number },
): OpenFleet {
  const { name } = node;
  const cause = "ECONNREFUSED";
  const state = (): FleetState => ({
    admitted: servers.reachable ? [name] : [],
    quarantined: [],
    unreachable: servers.reachable ? [] : [{ node: name, cause }],
    refusal: undefined,
    maxTtlMs,
  });
  const asked = <Answer>(answer: () => Answer) =>
    servers.reachable
      ? ({ kind: "answered", node: name, answer: answer() } as const)
      : ({ kind: "unreachable", node: name, cause } as const);
  const unchangeable = async (): Promise<never> => {
    throw new TypeError("the members of a fake cannot be changed");
  };
  return {
    nodes: [node],
    maxTtlMs,
    refusal: undefined,
    onChange: () => {},
    state,
    settled: async () => state(),
    listResources: async () => [asked(() => [...memory.tokens.keys()])],
    listHeld: async (prefix) => [asked(() => ({ leases: node.leases(prefix), steps: 1, isWhole: true }))],
    report: async () => [asked(() => FAKE_REPORT)],
    mark: async (mark, atLeast) => [
      asked(() => {
        memory.marks.set(mark, Math.max(atLeast, memory.marks.get(mark) ?? 0));
        return memory.marks.get(mark) ?? 0;
      }),
    ],
    members: () => undefined,
    reconfigure: unchangeable,
    foundWithout: unchangeable,
    probe: async () => [],
    close: () => node.close(),
  };
}

interface Held {
  readonly owner: string;
  readonly label: string;
  untilAt: number;
  /** Free, and kept for the one with this ticket. */
  readonly reservedFor?: Ticket;
}

/** Of the callers of one locker that want the same. */
interface Ticket {
  readonly node: FakeNode;
  readonly resources: readonly string[];
  wait: Wait;
  /** Until when a part of it is kept, and from when on it may be kept again (queue.lua). */
  keptUntilAt: number;
  keptAgainAt: number;
}

/** What a node stores, of one namespace. */
export class FakeMemory {
  readonly locks = new Map<string, Held>();
  readonly tokens = new Map<string, number>();
  readonly marks = new Map<string, number>();
  /** Those that wait. */
  readonly tickets = new Set<Ticket>();
  /** The highest token of any resource. */
  floor = 0;
}

const EPOCH = "fake";

/**
 * One node in memory, which executes requests as the scripts on a Redis master do. The lockers of a
 * test share its memory.
 */
export class FakeNode implements LockNode {
  readonly name = "n1";
  readonly address = "fake:0";
  readonly roundTripMs = 0;
  readonly distanceMs = 0;
  readonly #memory: FakeMemory;
  readonly #clock: Clock;
  readonly #isReachable: () => boolean;
  readonly #listeners = new Map<string, Set<ReleaseListener>>();
  readonly #tickets = new Map<string, Ticket>();

  constructor(memory: FakeMemory, clock: Clock, isReachable: () => boolean) {
    this.#memory = memory;
    this.#clock = clock;
    this.#isReachable = isReachable;
  }

  epoch(): string {
    return EPOCH;
  }

  async met(): Promise<void> {}

  async close(): Promise<void> {}

  listenAnew(): void {}

  /** In a turn of its own, as from a server. */
  async ask<V extends Verb>(verb: V, question: QuestionOf<V>): Promise<BallotOf<V>> {
    await Promise.resolve();
    if (!this.#isReachable()) return { kind: "unreachable", node: this.name, cause: "ECONNREFUSED", unsent: true };
    return this.#answers[verb](question);
  }

  readonly #answers: Answers = {
    grant: (question) => this.#grant(question),
    claim: (question) => {
      const { resources, wait } = question;
      for (const resource of resources) if (this.#held(resource)?.owner === wait.follows) this.#memory.locks.delete(resource);
      return this.#grant(question, wait);
    },
    seal: ({ resources, owner, token }) => {
      const isOurs = resources.every((resource) => this.#held(resource)?.owner === owner && this.#token(resource) <= token);
      if (isOurs) for (const resource of resources) this.#store(resource, token);
      return isOurs ? { kind: "sealed", node: this.name, epoch: EPOCH } : { kind: "lost", node: this.name };
    },
    extend: ({ resources, owner, ttlMs }) => {
      const held = resources.map((resource) => this.#held(resource));
      const other = held.find((each) => each !== undefined && each.owner !== owner);
      if (other !== undefined) return { kind: "taken", node: this.name, holder: other.label, remainingMs: this.#leftMs(other) };
      if (held.includes(undefined)) return { kind: "missing", node: this.name };
      const untilAt = this.#clock.monotonicMs() + ttlMs;
      for (const [i, resource] of resources.entries()) {
        const before = held[i];
        if (before !== undefined) this.#memory.locks.set(resource, { ...before, untilAt });
      }
      return { kind: "extended", node: this.name };
    },
    heal: (question) => {
      for (const resource of question.resources) if (this.#held(resource) === undefined) this.#take(resource, question);
      return { kind: "extended", node: this.name };
    },
    release: ({ resources, owner, tells }) => {
      const ours = resources.filter((resource) => this.#held(resource)?.owner === owner);
      for (const resource of ours) this.#memory.locks.delete(resource);
      const waiting = ours.map((resource) => (tells ? this.#handOver(resource) : 0));
      return ours.length === 0
        ? { kind: "absent", node: this.name }
        : { kind: "released", node: this.name, listeners: Math.max(...waiting) };
    },
    leave: ({ resources, ticket: name }) => {
      const ticket = this.#tickets.get(name);
      if (ticket !== undefined) this.#memory.tickets.delete(ticket);
      const kept = resources.filter((resource) => ticket !== undefined && this.#memory.locks.get(resource)?.reservedFor === ticket);
      for (const resource of kept) this.#memory.locks.delete(resource);
      for (const resource of kept) this.#handOver(resource);
      return { kind: "absent", node: this.name };
    },
    inspect: ({ resources: [resource = ""] }) => {
      const held = this.#held(resource);
      const [holder, owner, remainingMs] =
        held === undefined || held.reservedFor !== undefined
          ? [null, null, null]
          : [held.label, fingerprintOf(held.owner), this.#leftMs(held)];
      const waiting = this.#queue(resource).length;
      const seen = { kind: "seen", node: this.name, holder, owner, remainingMs, token: this.#token(resource), waiting } as const;
      return held?.reservedFor === undefined ? seen : { ...seen, isReserved: true };
    },
    raise: ({ resources: [resource = ""], token, holder }) => {
      const there = holder === undefined ? undefined : this.#held(resource);
      const held = there?.reservedFor === undefined ? there : undefined;
      if (held !== undefined && fingerprintOf(held.owner) !== holder) return { kind: "kept", node: this.name };
      this.#store(resource, Math.max(token, this.#token(resource)));
      if (held !== undefined) {
        this.#memory.locks.delete(resource);
        this.#handOver(resource);
      }
      return { kind: "raised", node: this.name, token: this.#token(resource), epoch: EPOCH, removed: held?.label ?? null };
    },
  };

  leases(prefix: string): ReadonlyMap<string, StoredLease> {
    const names = [...this.#memory.locks.keys()].filter((name) => name.startsWith(prefix));
    return new Map(
      names.flatMap((resource): (readonly [string, StoredLease])[] => {
        const held = this.#held(resource);
        if (held === undefined || held.reservedFor !== undefined) return [];
        const [owner, waiting] = [fingerprintOf(held.owner), this.#queue(resource).length];
        const lease = { resource, owner, holder: held.label, remainingMs: this.#leftMs(held), token: this.#token(resource), waiting };
        return [[resource, lease]];
      }),
    );
  }

  onReleased(ticket: string, listener: ReleaseListener): () => void {
    const listeners = this.#listeners.get(ticket) ?? new Set();
    this.#listeners.set(ticket, listeners.add(listener));
    listener.listening();
    return () => listeners.delete(listener);
  }

  #grant({ resources, owner, label, ttlMs }: GrantQuestion, wait?: Wait): GrantBallot {
    const ticket = wait === undefined ? undefined : this.#takePlace(resources, wait);
    for (const resource of resources) {
      const held = this.#held(resource, ticket);
      if (held !== undefined && held.owner !== owner) {
        const refused = { kind: "held", node: this.name, resource, holder: held.label, remainingMs: this.#leftMs(held) } as const;
        const there = held.reservedFor === undefined ? refused : { ...refused, isReserved: true as const };
        return ticket === undefined ? there : { ...there, place: this.#queue(resource).indexOf(ticket) + 1 };
      }
    }
    if (ticket !== undefined) this.#memory.tickets.delete(ticket);
    const token = Math.max(...resources.map((resource) => this.#token(resource))) + 1;
    for (const resource of resources) this.#take(resource, { owner, label, token, ttlMs });
    return { kind: "granted", node: this.name, token, epoch: EPOCH };
  }

  /** Unless all that it wants is reserved for it. */
  #takePlace(resources: readonly string[], wait: Wait): Ticket {
    const ticket = this.#tickets.get(wait.ticket) ?? { node: this, resources, wait, keptUntilAt: 0, keptAgainAt: 0 };
    this.#tickets.set(wait.ticket, Object.assign(ticket, { wait }));
    if (resources.every((resource) => this.#memory.locks.get(resource)?.reservedFor === ticket)) return ticket;
    this.#memory.tickets.add(ticket);
    for (const resource of resources) if (this.#held(resource) === undefined) this.#handOver(resource);
    return ticket;
  }

  /** What is reserved for the ticket is free. */
  #held(resource: string, ticket?: Ticket): Held | undefined {
    const held = this.#memory.locks.get(resource);
    if (held === undefined || (ticket !== undefined && held.reservedFor === ticket)) return undefined;
    if (held.untilAt > this.#clock.monotonicMs()) return held;
    this.#memory.locks.delete(resource);
    return undefined;
  }

  #leftMs({ untilAt }: Held): number {
    return Math.ceil(untilAt - this.#clock.monotonicMs());
  }

  #take(resource: string, { owner, label, token, ttlMs }: Omit<GrantQuestion, "resources"> & { readonly token: number }): void {
    this.#memory.locks.set(resource, { owner, label, untilAt: this.#clock.monotonicMs() + ttlMs });
    this.#store(resource, token);
  }

  #token(resource: string): number {
    return this.#memory.tokens.get(resource) ?? this.#memory.floor;
  }

  #store(resource: string, token: number): void {
    this.#memory.tokens.set(resource, token);
    this.#memory.floor = Math.max(this.#memory.floor, token);
  }

  #queue(resource: string): readonly Ticket[] {
    const waiting = [...this.#memory.tickets].filter(({ resources }) => resources.includes(resource));
    return waiting.sort((a, b) => a.wait.sinceMs - b.wait.sinceMs);
  }

  /** A free lock belongs to the first in its queue (queue.lua). Returns how many wait. */
  #handOver(resource: string): number {
    const queue = this.#queue(resource);
    for (const [place, ticket] of queue.entries()) {
      const forMs = this.#reserve(ticket);
      if (forMs === 0) continue;
      for (const other of new Set([queue[place + 1], queue.at(-1)]))
        if (other !== undefined && other !== ticket) other.node.#tell(other, forMs);
      break;
    }
    return queue.length;
  }

  /** What is free of what it wants, if that is all, or if it is the first everywhere. For how long; 0: not at all. */
  #reserve(ticket: Ticket): number {
    const { resources, wait } = ticket;
    const now = this.#clock.monotonicMs();
    const free = resources.filter((resource) => this.#held(resource, ticket) === undefined);
    const isAll = free.length === resources.length;
    if (!isAll && !resources.every((resource) => this.#queue(resource)[0] === ticket)) return 0;
    if (!isAll && now >= ticket.keptAgainAt) {
      const keepMs = Math.max(4 * wait.reserveMs, Math.min(LONGEST_PART_MS, (this.#clock.wallMs() - wait.sinceMs) / 4));
      ticket.keptUntilAt = now + keepMs;
      ticket.keptAgainAt = now + 4 * keepMs;
    }
    const forMs = isAll ? wait.reserveMs : Math.max(0, ticket.keptUntilAt - now);
    if (forMs === 0) return 0;
    const reservation = { owner: "", label: "the next in line", untilAt: now + forMs, reservedFor: ticket };
    for (const resource of free) this.#memory.locks.set(resource, reservation);
    if (isAll) {
      this.#memory.tickets.delete(ticket);
      ticket.keptAgainAt = 0;
    }
    ticket.node.#tell(ticket, isAll ? 0 : forMs);
    return forMs;
  }

  #tell({ wait }: Ticket, otherMs: number): void {
    const listeners = [...(this.#listeners.get(wait.ticket) ?? [])];
    for (const listener of listeners) soon(() => listener.released(otherMs, wait.sinceMs + wait.waitedMs));
  }
}

/** Not with queueMicrotask: some frameworks fake it, and a notice would wait for a timer. */
function soon(run: () => void): void {
  void Promise.resolve().then(run);
}
