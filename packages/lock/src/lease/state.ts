// What one locker keeps, and every verb of the algorithm is given: the fleet, its policy, the clock,
// and what its callers share. And what becomes of one acquisition: won, or lost and why.
import { type Policy, policyFor } from "../options/policy.js";
import { type Clock, InFlight } from "../platform/clock.js";
import { DeadlineHeap } from "../platform/deadline-heap.js";
import { type EpochMoved, type GrantBallot, LockError, type LossReason, type SealBallot } from "../protocol/ballot.js";
import type { OpenFleet } from "../protocol/fleet.js";
import type { LockNode } from "../protocol/node.js";
import type { Wait } from "../protocol/verbs.js";
import { freeInMs, type QuorumRule } from "../quorum.js";
import { LocalQueue } from "./local-queue.js";

export class LockerState {
  readonly fleet: OpenFleet;
  readonly clock: Clock;
  /**
   * The members of the present generation, and the policy with their number. Both are replaced when
   * the members change: a verb reads them once, before its first round.
   */
  nodes: readonly LockNode[];
  policy: Policy;
  readonly deadlines: DeadlineHeap;
  readonly inFlight = new InFlight();
  /** By what is wanted: of the callers that want the same only the first asks the nodes. */
  readonly callers = new LocalQueue<Lost>(1);
  /** Called when other nodes are members. */
  readonly onMembers = new Set<() => void>();
  /** The callers that sleep at the moment. */
  readonly sleeping = new Set<{ wake(): void }>();
  isClosed = false;

  constructor(fleet: OpenFleet, policy: Policy, clock: Clock) {
    this.fleet = fleet;
    this.clock = clock;
    this.nodes = fleet.nodes;
    this.policy = policyFor(fleet.nodes.length, policy);
    this.deadlines = new DeadlineHeap(clock);
    fleet.onChange(() => {
      if (fleet.nodes === this.nodes) return;
      this.nodes = fleet.nodes;
      this.policy = policyFor(fleet.nodes.length, policy);
      for (const told of [...this.onMembers]) told();
    });
  }

  /** No caller sleeps from then on. */
  wakeAll(): void {
    this.isClosed = true;
    for (const sleeper of [...this.sleeping]) sleeper.wake();
  }

  /** Throws if this locker must not use these nodes. */
  checkUsable(): void {
    const { refusal } = this.fleet;
    if (refusal === undefined) return;
    throw refusal.kind === "ttl" ? new RangeError(refusal.message) : new LockError("FLEET_MISMATCH", refusal.message);
  }

  /**
   * Throws RangeError if the fleet is known to allow only shorter leases: a longer one would
   * outlive the time that a node which lost its memory is made to wait, and that node would grant
   * the resource to a second holder (L2).
   */
  checkTtl(ttlMs: number): void {
    const { maxTtlMs } = this.fleet;
    if (maxTtlMs === undefined || ttlMs <= maxTtlMs) return;
    throw new RangeError(`ttlMs ${ttlMs} is longer than this fleet's leases may be: ${maxTtlMs} ms (maxTtlMs, stored with the fleet)`);
  }
}

/** What is acquired. */
export interface Wanted {
  readonly resources: readonly string[];
  /** Of its holder, for people. */
  readonly label: string;
  readonly ttlMs: number;
  /** Of a caller that waits. */
  readonly wait?: Wait | undefined;
}

/** A lease as the nodes granted it. */
export interface Won {
  readonly kind: "won";
  readonly resources: readonly string[];
  readonly owner: string;
  readonly token: number;
  readonly ttlMs: number;
  /**
   * Both clocks before the first byte was sent: the lease counts from then, so it ends before the
   * nodes' keys (L2).
   */
  readonly startMonotonicMs: number;
  readonly startWallMs: number;
  /** The name of the ticket that won it, if one did. */
  readonly ticket: string | undefined;
  /** The nodes that were asked. */
  readonly nodes: readonly LockNode[];
  /** Filled in as further nodes answer. */
  readonly ballots: readonly (GrantBallot | EpochMoved | undefined)[];
}

export interface Lost {
  readonly kind: "lost";
  readonly reason: LossReason;
  /** Lost only because epochs changed meanwhile: worth another acquisition at once. */
  readonly epochMoved: boolean;
  readonly ballots: readonly (GrantBallot | EpochMoved)[];
  readonly seals: readonly (SealBallot | EpochMoved)[];
  /** How many nodes granted it, in vain. */
  readonly grants: number;
  /** What was left of the lease, if that was too little. */
  readonly leftMs: number | undefined;
}

export type Outcome = Won | Lost;

/**
 * In how many milliseconds it can be free at the earliest, if it is held and enough nodes said for
 * how long.
 */
export function retryAfterMs({ reason, ballots }: Lost, rule: QuorumRule): number | undefined {
  return reason === "held" ? freeInMs(ballots, rule) : undefined;
}
