// One node in memory, which executes the requests of the lock as the scripts on a Redis master do.
// The lockers of a test share its memory.
import { createHash } from "node:crypto";
import type { Clock } from "../platform/clock.js";
import type { ExtendBallot, GrantBallot, InspectBallot, RaiseBallot, ReleaseBallot, SealBallot, Unreachable } from "../protocol/ballot.js";
import type { StoredLease } from "../protocol/fleet.js";
import {
  type ExtendQuestion,
  type GrantQuestion,
  type LockNode,
  type Ownership,
  type ReleaseListener,
  type ReleaseQuestion,
  WAKE_SLOTS,
} from "../protocol/node.js";

interface Held {
  readonly owner: string;
  readonly label: string;
  untilAt: number;
}

/** What a node stores, of one namespace. */
export class FakeMemory {
  readonly locks = new Map<string, Held>();
  readonly tokens = new Map<string, number>();
  readonly marks = new Map<string, number>();
  readonly listeners = new Map<string, Map<ReleaseListener, number>>();
  /** The highest token of any resource. */
  floor = 0;
}

const EPOCH = "fake";

export class FakeNode implements LockNode {
  readonly name = "n1";
  readonly address = "fake:0";
  readonly #memory: FakeMemory;
  readonly #clock: Clock;
  readonly #isReachable: () => boolean;

  constructor(memory: FakeMemory, clock: Clock, isReachable: () => boolean) {
    this.#memory = memory;
    this.#clock = clock;
    this.#isReachable = isReachable;
  }

  incarnation(): string {
    return EPOCH;
  }

  async met(): Promise<void> {}

  async close(): Promise<void> {}

  grant({ resources, owner, label, ttlMs }: GrantQuestion): Promise<GrantBallot> {
    return this.#answer((): GrantBallot => {
      for (const resource of resources) {
        const held = this.#held(resource);
        if (held !== undefined && held.owner !== owner)
          return { kind: "held", node: this.name, resource, holder: held.label, remainingMs: this.#leftMs(held) };
      }
      const token = Math.max(...resources.map((resource) => this.#token(resource))) + 1;
      for (const resource of resources) this.#take(resource, { owner, label, token, ttlMs });
      return { kind: "granted", node: this.name, token, epoch: EPOCH };
    });
  }

  seal({ resources, owner, token }: Ownership & { readonly token: number }): Promise<SealBallot> {
    return this.#answer((): SealBallot => {
      const isOurs = resources.every((resource) => this.#held(resource)?.owner === owner && this.#token(resource) <= token);
      if (isOurs) for (const resource of resources) this.#store(resource, token);
      return isOurs ? { kind: "sealed", node: this.name, epoch: EPOCH } : { kind: "lost", node: this.name };
    });
  }

  extend({ resources, owner, ttlMs, heir }: ExtendQuestion): Promise<ExtendBallot> {
    return this.#answer((): ExtendBallot => {
      const held = resources.map((resource) => this.#held(resource));
      const other = held.find((each) => each !== undefined && each.owner !== owner && each.owner !== heir?.owner);
      if (other !== undefined) return { kind: "taken", node: this.name, holder: other.label, remainingMs: this.#leftMs(other) };
      if (held.includes(undefined)) return { kind: "missing", node: this.name };
      const untilAt = this.#clock.monotonicMs() + ttlMs;
      for (const [i, resource] of resources.entries()) {
        const before = held[i];
        if (before !== undefined) this.#memory.locks.set(resource, { ...before, ...heir, untilAt });
      }
      return { kind: "extended", node: this.name };
    });
  }

  heal(question: GrantQuestion & { readonly token: number }): Promise<ExtendBallot> {
    return this.#answer((): ExtendBallot => {
      for (const resource of question.resources) if (this.#held(resource) === undefined) this.#take(resource, question);
      return { kind: "extended", node: this.name };
    });
  }

  release({ resources, owner, notifyFrom }: ReleaseQuestion): Promise<ReleaseBallot> {
    return this.#answer((): ReleaseBallot => {
      const ours = resources.filter((resource) => this.#held(resource)?.owner === owner);
      const waiting = ours.map((resource) => this.#free(resource, notifyFrom));
      return ours.length === 0
        ? { kind: "absent", node: this.name }
        : { kind: "released", node: this.name, listeners: Math.max(...waiting) };
    });
  }

  inspect(resource: string): Promise<InspectBallot> {
    return this.#answer((): InspectBallot => {
      const held = this.#held(resource);
      const [holder, owner, remainingMs] =
        held === undefined ? [null, null, null] : [held.label, fingerprintOf(held.owner), this.#leftMs(held)];
      return { kind: "seen", node: this.name, holder, owner, remainingMs, token: this.#token(resource) };
    });
  }

  leases(prefix: string): ReadonlyMap<string, StoredLease> {
    const names = [...this.#memory.locks.keys()].filter((name) => name.startsWith(prefix));
    return new Map(
      names.flatMap((resource): (readonly [string, StoredLease])[] => {
        const held = this.#held(resource);
        if (held === undefined) return [];
        const owner = fingerprintOf(held.owner);
        return [[resource, { resource, owner, holder: held.label, remainingMs: this.#leftMs(held), token: this.#token(resource) }]];
      }),
    );
  }

  raise({ resource, token, remove }: Parameters<LockNode["raise"]>[0]): Promise<RaiseBallot> {
    return this.#answer((): RaiseBallot => {
      const held = remove === "holder" ? this.#held(resource) : undefined;
      this.#store(resource, Math.max(token, this.#token(resource)));
      if (held !== undefined) this.#free(resource, token);
      return { kind: "raised", node: this.name, token: this.#token(resource), epoch: EPOCH, removed: held?.label ?? null };
    });
  }

  onReleased(resource: string, wakeSlot: number, listener: ReleaseListener): () => void {
    const listeners = this.#memory.listeners.get(resource) ?? new Map<ReleaseListener, number>();
    this.#memory.listeners.set(resource, listeners.set(listener, wakeSlot));
    soon(() => {
      if (listeners.has(listener)) listener.listening();
    });
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#memory.listeners.delete(resource);
    };
  }

  /** In a turn of its own, as from a server. */
  async #answer<Ballot>(execute: () => Ballot): Promise<Ballot | Unreachable> {
    await Promise.resolve();
    if (!this.#isReachable()) return { kind: "unreachable", node: this.name, cause: "ECONNREFUSED", unsent: true };
    return execute();
  }

  #held(resource: string): Held | undefined {
    const held = this.#memory.locks.get(resource);
    if (held === undefined || held.untilAt > this.#clock.monotonicMs()) return held;
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

  /** How many wait; those of the first two occupied wake slots are notified. */
  #free(resource: string, from: number): number {
    this.#memory.locks.delete(resource);
    const listeners = [...(this.#memory.listeners.get(resource) ?? [])];
    const turnOf = (slot: number): number => (slot - from + WAKE_SLOTS * Math.ceil(from / WAKE_SLOTS)) % WAKE_SLOTS;
    const slots = [...new Set(listeners.map(([, slot]) => slot))].sort((a, b) => turnOf(a) - turnOf(b)).slice(0, from === 0 ? 0 : 2);
    for (const [rank, slot] of slots.entries()) {
      const told = listeners.filter(([, each]) => each === slot);
      for (const [listener] of told) soon(() => listener.released({ rank, listeners: told.length }));
    }
    return listeners.length;
  }
}

/** Not with queueMicrotask: some frameworks fake it, and a notice would wait for a timer. */
function soon(run: () => void): void {
  void Promise.resolve().then(run);
}

/** Tells owners apart without showing their secrets. */
function fingerprintOf(owner: string): string {
  return createHash("sha256").update(owner).digest("base64url").slice(0, 8);
}
