// What became of one acquisition: won, or lost and why.
import type { Ballot, EpochMoved, GrantBallot, SealBallot } from "./ballot.js";
import type { LossReason } from "./errors.js";
import type { LockNode, Wait } from "./node.js";

/** What is acquired. */
export interface Wanted {
  readonly resources: readonly string[];
  readonly ttlMs: number;
  /** The caller waits; the lock value then says from the start that others may be waiting, too. */
  readonly wait?: Wait | undefined;
}

/** A lease as the nodes granted it, or confirmed it to a process that adopts it. */
export interface GrantedLease {
  readonly resources: readonly string[];
  readonly owner: string;
  readonly token: number;
  readonly ttlMs: number;
  /** Both clocks before the first byte was sent: the lease counts from then (L2). */
  readonly startMonotonicMs: number;
  readonly startWallMs: number;
  /** The name of the ticket that won it, if one did. */
  readonly ticket?: string | undefined;
  /** Filled in as further nodes answer. */
  readonly votes: readonly (Ballot | undefined)[];
}

export interface Won extends GrantedLease {
  readonly kind: "won";
  /** The nodes that were asked. */
  readonly nodes: readonly LockNode[];
  readonly votes: readonly (GrantBallot | EpochMoved | undefined)[];
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
