// A node that answers as a test tells it, and remembers what it was asked. Only for orders of
// events that real servers do not produce on demand.

import type { Won } from "../../src/lease/context.js";
import { HeldLease } from "../../src/lease/held-lease.js";
import { readPolicy } from "../../src/options/policy.js";
import { InFlight } from "../../src/platform/clock.js";
import { DeadlineHeap } from "../../src/platform/deadline-heap.js";
import type { ExtendBallot, GrantBallot, ReleaseBallot, SealBallot } from "../../src/protocol/ballot.js";
import type { ExtendQuestion, GrantQuestion, LockNode, Ownership, ReleaseQuestion } from "../../src/protocol/node.js";
import { LeastToken } from "../../src/protocol/token.js";
import { LocalQueue, QueuedResources, type WaitContext } from "../../src/waiting/context.js";
import { LookTimer } from "../../src/waiting/wait-budget.js";
import { ManualClock } from "./manual-clock.js";

const notScripted = (): never => {
  throw new Error("not scripted");
};

export class ScriptedNode implements LockNode {
  readonly address = "";
  readonly asked: string[] = [];
  readonly owners: string[] = [];
  /** Of each release: whether it tells those that wait. */
  readonly tells: boolean[] = [];
  /** Of each release: the ticket that it takes along. */
  readonly tickets: (string | undefined)[] = [];
  now = "e1";
  inspect = notScripted;
  raise = notScripted;
  onReleased = notScripted;
  leave = notScripted;
  close = notScripted;

  constructor(
    readonly name: string,
    readonly answers: {
      readonly grant: (node: ScriptedNode, question: GrantQuestion) => GrantBallot | Promise<GrantBallot>;
      readonly seal?: (node: ScriptedNode, token: number) => SealBallot;
      readonly onHeal?: () => void;
      readonly extend?: (node: ScriptedNode, question: ExtendQuestion) => ExtendBallot | Promise<ExtendBallot>;
    },
  ) {}

  epoch(): string {
    return this.now;
  }

  async met(): Promise<void> {}

  async grant(question: GrantQuestion): Promise<GrantBallot> {
    this.asked.push("grant");
    this.owners.push(question.owner);
    return this.answers.grant(this, question);
  }

  async seal({ token }: Ownership & { readonly token: number }): Promise<SealBallot> {
    this.asked.push(`seal ${token}`);
    return this.answers.seal?.(this, token) ?? { kind: "sealed", node: this.name, epoch: this.now };
  }

  async extend(question: ExtendQuestion): Promise<ExtendBallot> {
    this.asked.push("extend");
    this.owners.push(question.owner);
    return this.answers.extend?.(this, question) ?? { kind: "extended", node: this.name };
  }

  async heal({ ttlMs }: GrantQuestion): Promise<ExtendBallot> {
    this.asked.push(`heal ${ttlMs}`);
    this.answers.onHeal?.();
    return { kind: "extended", node: this.name };
  }

  async release({ tells, ticket }: ReleaseQuestion): Promise<ReleaseBallot> {
    this.asked.push("release");
    this.tells.push(tells);
    this.tickets.push(ticket);
    return { kind: "absent", node: this.name };
  }

  granted(token: number, epoch = this.now): GrantBallot {
    return { kind: "granted", node: this.name, token, epoch };
  }
}

export function contextOf(nodes: readonly LockNode[], clock = new ManualClock()): WaitContext {
  return {
    nodes,
    clock,
    policy: readPolicy({ nodes: nodes.map((_, i) => `redis://127.0.0.1:${7000 + i}`) }),
    fleetMaxTtlMs: undefined,
    checkFleetTtl: () => {},
    deadlines: new DeadlineHeap(clock),
    inFlight: new InFlight(),
    leastToken: new LeastToken(),
    onReleased: () => {},
    queuedResources: new QueuedResources(clock),
    looks: new LookTimer(clock),
    resourceQueue: new LocalQueue(1),
    waiters: { closed: false, sleeping: new Set() },
    onMembers: new Set(),
  };
}

/** A lease of these nodes, granted now; renewed only by the test. */
export function leaseOf(nodes: readonly LockNode[], clock: ManualClock, ttlMs = 10_000): HeldLease {
  const started = { startMonotonicMs: clock.now, startWallMs: clock.wallMs() };
  const grant: Won = { kind: "won", resources: ["r"], owner: "o", token: 7, ttlMs, ...started, ticket: undefined, nodes, votes: [] };
  return new HeldLease(contextOf(nodes, clock), grant, { renew: false, maxHoldMs: Number.POSITIVE_INFINITY });
}
