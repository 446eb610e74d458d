// What one attempt to take resources came to: won, or lost and why.
import type { Ballot, EpochMoved, GrantBallot, SealBallot } from "./ballot.js";
import type { LossReason } from "./errors.js";

/** What an attempt won, or an adoption proved. */
export interface Grant {
  readonly resources: readonly string[];
  readonly owner: string;
  readonly token: number;
  readonly ttlMs: number;
  /** Before the first byte left. */
  readonly startMonotonicMs: number;
  readonly startWallMs: number;
  /** Filled in as further nodes answer. */
  readonly votes: readonly (Ballot | undefined)[];
}

export interface Won extends Grant {
  readonly kind: "won";
  readonly votes: readonly (GrantBallot | EpochMoved | undefined)[];
}

export interface Lost {
  readonly kind: "lost";
  readonly reason: LossReason;
  /** Lost only because the fleet's epoch moved meanwhile: worth another try at once. */
  readonly epochMoved: boolean;
  readonly ballots: readonly (GrantBallot | EpochMoved)[];
  readonly seals: readonly (SealBallot | EpochMoved)[];
  /** How many nodes granted it to us, in vain. */
  readonly grants: number;
  /** In how long enough of the holders can have run out, where known. */
  readonly freeInMs: number | undefined;
  /** What was left of the lease, if that was too little. */
  readonly leftMs: number | undefined;
}

export type Outcome = Won | Lost;

export interface Wish {
  readonly resources: readonly string[];
  readonly ttlMs: number;
  /** Whoever wishes it has waited for it already, and others may, too. */
  readonly hasWaited?: true | undefined;
}
