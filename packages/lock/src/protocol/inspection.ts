// What an operator is told: of one resource, of all that is held, of each node, and of a forced
// release.
import type { InspectBallot, RaiseBallot } from "./ballot.js";
import type { NodeReport } from "./fleet.js";

/** What the nodes store of a resource. */
export interface Inspection {
  /** The resource that was asked about. */
  readonly resource: string;
  /**
   * `held`: one holder on a quorum. `free`: a quorum has none. `split`: neither can be true.
   * `unknown`: too few nodes answered to tell.
   */
  readonly state: "held" | "free" | "split" | "unknown";
  /** The label of the holder, if `held`. */
  readonly holder?: string;
  /** For how long a quorum will have that holder at most, in milliseconds, if `held`. */
  readonly remainingMs?: number;
  /** The highest token stored for it on any node that answered; 0 if it never had one. */
  readonly token: number;
  /** What each node answered. */
  readonly ballots: readonly InspectBallot[];
  /** The fleet that it belongs to, where the locker has several. */
  readonly fleet?: string;
}

/** What is held of one resource. */
export interface HeldResource {
  /** The resource. */
  readonly resource: string;
  /** As in an inspection. */
  readonly state: "held" | "split" | "unknown";
  /** The label of the holder, if `held`. */
  readonly holder?: string;
  /** For how long a quorum will have that holder at most, in milliseconds, if `held`. */
  readonly remainingMs?: number;
  /** The highest token stored for it on any node that answered. */
  readonly token: number;
  /** Where it is held, if the locker has several. */
  readonly fleet?: string;
}

/** What is held now. */
export interface HeldResources {
  /** In the order of their names. */
  readonly held: readonly HeldResource[];
  /** There are more of them than were asked for. */
  readonly more: boolean;
  /** The nodes that did not answer, or do not vote. */
  readonly silent: readonly string[];
  /** How many questions one node was asked for it: what it cost. */
  readonly steps: number;
}

/** Options of listHeld. */
export interface ListHeldOptions {
  /** Only resources whose names begin so. Default: all. */
  readonly prefix?: string;
  /** At most so many, in the order of their names. Default 100 000, which is also the most. */
  readonly limit?: number;
}

/** How one member of the fleet stands now, and what it says of itself where it answers. */
export interface NodeInspection extends Partial<NodeReport> {
  /** The name of the node: n1, n2, … in the order of `nodes`. */
  readonly node: string;
  /** Host and port. */
  readonly address: string;
  /**
   * `votes`: its memory is believed. `waits`: it is up, and may have forgotten what it stored.
   * `silent`: it did not answer.
   */
  readonly state: "votes" | "waits" | "silent";
  /** Of one that waits: earliest moment from now at which it can vote, where known. */
  readonly readyInMs?: number;
  /** Why it does not vote, where that is known. */
  readonly reason?: string;
  /** Of which it is a member, where the locker has several. */
  readonly fleet?: string;
}

/** What a forced release did. */
export interface ForcedRelease {
  /** What the nodes stored before. */
  readonly before: Inspection;
  /** Labels of the holders that were removed, on any node. */
  readonly removed: readonly string[];
  /**
   * Stored on a quorum: every later lease has a higher token. Present it to the store (a seal with
   * this token) to keep the old holder's writes out at once.
   */
  readonly fence: number;
  /** What each node answered. */
  readonly ballots: readonly RaiseBallot[];
}
