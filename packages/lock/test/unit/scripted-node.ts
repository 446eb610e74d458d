// A node that answers as a test tells it, and remembers what it was asked. Only for orders of
// events that real servers do not produce on demand.
import { HeldLease } from "../../src/lease/held-lease.js";
import { LockerState, type Won } from "../../src/lease/state.js";
import { readPolicy } from "../../src/options/policy.js";
import type { Clock } from "../../src/platform/clock.js";
import type { GrantBallot } from "../../src/protocol/ballot.js";
import type { OpenFleet } from "../../src/protocol/fleet.js";
import type { LockNode } from "../../src/protocol/node.js";
import type { BallotOf, QuestionOf, ReleaseQuestion, Verb } from "../../src/protocol/verbs.js";

/** Which verbs it answers in a way of its own: to the others it says yes, or throws. */
type Scripted = {
  [V in Verb]?: (node: ScriptedNode, question: QuestionOf<V>) => BallotOf<V> | Promise<BallotOf<V>>;
};

const notScripted = (): never => {
  throw new Error("not scripted");
};

export class ScriptedNode implements LockNode {
  readonly address = "";
  /** The verbs, each with the number that the test is about. */
  readonly asked: string[] = [];
  readonly owners: string[] = [];
  readonly releases: ReleaseQuestion[] = [];
  now = "e1";
  onReleased = notScripted;
  listenAnew = notScripted;
  roundTripMs = 0;
  distanceMs = 0;
  close = notScripted;
  readonly answers: Scripted;

  constructor(
    readonly name: string,
    given: Scripted,
  ) {
    const { grant } = given;
    this.answers = {
      ...(grant === undefined ? {} : { claim: grant }),
      seal: () => ({ kind: "sealed", node: name, epoch: this.now }),
      extend: () => ({ kind: "extended", node: name }),
      heal: () => ({ kind: "extended", node: name }),
      release: () => ({ kind: "absent", node: name }),
      ...given,
    };
  }

  epoch(): string {
    return this.now;
  }

  async met(): Promise<void> {}

  async ask<V extends Verb>(verb: V, question: QuestionOf<V>): Promise<BallotOf<V>> {
    const { owner, token, ttlMs } = question as { readonly owner?: string; readonly token?: number; readonly ttlMs?: number };
    const number = verb === "seal" ? token : verb === "heal" ? ttlMs : undefined;
    this.asked.push(number === undefined ? verb : `${verb} ${number}`);
    if (verb === "release") this.releases.push(question as ReleaseQuestion);
    else if (owner !== undefined && verb !== "seal" && verb !== "heal") this.owners.push(owner);
    const answer: Scripted[V] = this.answers[verb];
    return answer === undefined ? notScripted() : answer(this, question);
  }

  granted(token: number, epoch = this.now): GrantBallot {
    return { kind: "granted", node: this.name, token, epoch };
  }
}

/** Of a locker whose fleet has these nodes, and never changes. */
export function stateOf(nodes: readonly LockNode[], clock = new ManualClock()): LockerState {
  const fleet = { nodes, maxTtlMs: undefined, refusal: undefined, onChange: () => {} } as Partial<OpenFleet> as OpenFleet;
  return new LockerState(fleet, readPolicy({ nodes: nodes.map((_, i) => `redis://127.0.0.1:${7000 + i}`) }), clock);
}

/** A lease of these nodes, granted now; renewed only by the test. */
export function leaseOf(nodes: readonly LockNode[], clock: ManualClock, ttlMs = 10_000): HeldLease {
  const started = { startMonotonicMs: clock.now, startWallMs: clock.wallMs() };
  const grant: Won = { kind: "won", resources: ["r"], owner: "o", token: 7, ttlMs, ...started, ticket: undefined, nodes, ballots: [] };
  return new HeldLease(stateOf(nodes, clock), grant, { label: "l", renew: false, maxHoldMs: Number.POSITIVE_INFINITY });
}

// A clock that stands still until a test moves it. Timers fire in the order of their moments.

interface Pending {
  readonly at: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  now = 1_000;
  wallOffsetMs = 1_700_000_000_000;
  chance = 0.5;
  #pending: Pending[] = [];
  #secrets = 0;

  monotonicMs = (): number => this.now;
  wallMs = (): number => this.now + this.wallOffsetMs;
  random = (): number => this.chance;
  secret = (): string => `secret${++this.#secrets}`;

  setTimer = (delayMs: number, run: () => void): object => {
    const pending = { at: this.now + delayMs, run };
    this.#pending.push(pending);
    return pending;
  };

  setBackgroundTimer = this.setTimer;

  clearTimer = (timer: object | undefined): void => {
    this.#pending = this.#pending.filter((pending) => pending !== timer);
  };

  get timers(): number {
    return this.#pending.length;
  }

  /** Moves time on, and runs what is due on the way. */
  advance(byMs: number): void {
    const until = this.now + byMs;
    for (;;) {
      const next = this.#pending.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.clearTimer(next);
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    this.now = until;
  }
}
