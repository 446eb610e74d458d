// The nodes of one locker together: which of them are admitted, why the locker may not use them, what
// is wrong with them, what operators are told of them and of what is held, and how members change.
import type { InspectBallot, RaiseBallot, Unreachable } from "./ballot.js";
import type { LockNode, NodeSource, ServerSource } from "./node.js";

/**
 * Why this locker must not use this fleet. `ttl` is thrown as a RangeError, `mismatch` as
 * FLEET_MISMATCH.
 */
export interface FleetRefusal {
  readonly kind: "mismatch" | "ttl";
  /** Stable; also the code of the doctor's finding. */
  readonly code: "unknown_format" | "same_server" | "fleet_mismatch" | "max_ttl";
  /** Names nodes, numbers and the remedy. */
  readonly message: string;
}

/**
 * How each node stood when last heard. Every configured node is in exactly one of the three lists.
 */
export interface FleetState {
  /** Nodes that vote. */
  readonly admitted: readonly string[];
  /** Nodes that are up and do not vote yet, with the reason. */
  readonly quarantined: readonly {
    readonly node: string;
    readonly readyInMs?: number;
    readonly reason: string;
  }[];
  /** Nodes that could not be asked, with the cause. */
  readonly unreachable: readonly { readonly node: string; readonly cause: string }[];
  /** Why this locker must not use the fleet; undefined where it may. */
  readonly refusal: FleetRefusal | undefined;
  /** The longest lease the fleet allows, once known. */
  readonly maxTtlMs: number | undefined;
}

/** What a node answered outside of the algorithm. */
export type Asked<Answer> = { readonly kind: "answered"; readonly node: string; readonly answer: Answer } | Unreachable;

/** What one node stores of one lease. */
export interface StoredLease {
  readonly resource: string;
  /** Equal for the same acquisition; nothing can be released with it. */
  readonly owner: string;
  /** The label. */
  readonly holder: string;
  readonly remainingMs: number;
  /** The highest token stored for the resource. */
  readonly token: number;
  /** How many wait for it there. */
  readonly waiting: number;
}

export interface StoredLeases {
  readonly leases: ReadonlyMap<string, StoredLease>;
  /** In how many steps they were read. */
  readonly steps: number;
  /** False where the node has more than a process keeps. */
  readonly isWhole: boolean;
}

/** What one node says of itself and its server. */
export interface NodeReport {
  /** From a question to its answer, in milliseconds: the shortest of a few. */
  readonly latencyMs: number;
  /** How far its clock is ahead of this machine's, in milliseconds; negative: behind. */
  readonly clockAheadMs: number;
  /** By so much, either way, that may be wrong. */
  readonly clockUncertaintyMs: number;
  /** Of the server. */
  readonly version: string;
  /** Its epoch (docs/glossary.md), as ballots carry it; absent if it was never admitted. */
  readonly incarnation?: string;
  /** Of the server. */
  readonly memory: {
    /** How much of it is used. */
    readonly usedBytes: number;
    /** Absent: no limit is set. */
    readonly limitBytes?: number;
    /** What happens at the limit. Another than `noeviction` deletes locks that are held. */
    readonly evictionPolicy: string;
  };
  /** A restart forgets nothing. Absent where the server hides its settings. */
  readonly durable?: boolean;
  /** What it does not tell, and why. */
  readonly hidden?: string;
}

/** The members of a fleet. */
export interface FleetMembers {
  /** Rises with each change; 0 while the nodes have not told it. */
  readonly generation: number;
  /** As they were named when the fleet was founded or when they were added. */
  readonly members: readonly string[];
  /** The longest lease. */
  readonly maxTtlMs: number;
}

/**
 * One change of the members of a fleet. `remove` and `replace` name a member by its address, or by
 * the name that this locker gives it.
 */
export type MemberChange<Source = NodeSource> =
  | { readonly add: Source }
  | { readonly remove: string }
  | { readonly replace: string; readonly by: Source }
  | { readonly maxTtlMs: number };

/**
 * What operators and stores ask of the nodes together: `locker.fleet`. All calls but `doctor` and
 * `foundWithout` reject with LockError `FLEET_MISMATCH` where the nodes are not one fleet; all reject
 * with `LOCK_ABORTED` once the locker is closed.
 *
 * @example
 * const { held } = await locker.fleet.listHeld({ prefix: "orders/" });
 * for (const { severity, message, remedy } of await locker.fleet.doctor()) console.log(severity, message, remedy);
 */
export interface Fleet {
  /** How each member stands now, by its own word. */
  nodes(): Promise<readonly NodeInspection[]>;
  /**
   * Examines the nodes and the fleet. Takes and releases a lock of its own on each node, so that
   * missing rights show. Never rejects for what it finds.
   */
  doctor(): Promise<readonly Finding[]>;
  /**
   * What is held now, by the word of a quorum for each resource. The nodes are asked in small
   * steps. Rejects with `LOCK_NO_QUORUM` if too few answered.
   */
  listHeld(options?: ListHeldOptions): Promise<HeldResources>;
  /**
   * Removes the present holder and raises the token past its own. Its writes are refused as soon as
   * the store has seen the returned `fence` or the token of any later lease. Rejects with
   * `LOCK_NO_QUORUM` if that could not be done on a quorum. With `token` no other lease is removed:
   * rejects with `LEASE_LOST`, and changes nothing, where that one is over.
   */
  forceRelease(resource: string, options: ForceReleaseOptions): Promise<ForcedRelease>;
  /** The members of the fleet now. Rejects like `ready`. */
  members(): Promise<FleetMembers>;
  /**
   * Adds, removes or replaces one member, or changes the longest lease, while leases are taken and
   * held. Resolves with the members once a majority of the former ones has agreed; calling it again
   * finishes a change that was interrupted, and does nothing where it is done. Rejects with
   * `LOCK_NO_QUORUM` if that takes longer than waitMs, with RangeError if the newcomer belongs to
   * another fleet.
   *
   * @example
   * await locker.fleet.reconfigure({ replace: "10.0.0.3:6379", by: "redis://10.0.0.4:6379" });
   */
  reconfigure(change: MemberChange, options?: ReconfigureOptions): Promise<FleetMembers>;
  /**
   * Founds a new fleet while these of its nodes are down. They are admitted when they come, like
   * nodes that lost their memory. Only if they have never been used: what they remember is not
   * asked for.
   */
  foundWithout(absent: readonly string[]): Promise<FleetMembers>;
  /**
   * For a store that verifies tokens: whether this token, or a higher one, was ever issued for the
   * resource. Rejects with `LOCK_NO_QUORUM` if too few nodes answered.
   */
  issued(resource: string, token: number): Promise<boolean>;
  /**
   * For the recovery of a store, and for resources that come from another fleet: a token that no
   * lease granted before the call exceeds, and that is at least `atLeast`, stored so that every
   * later lease exceeds it; without a resource, of any lease of any of them. 0 if there was never a
   * lease of any resource. Rejects with `LOCK_NO_QUORUM` if too few nodes answered, with RangeError
   * if no fleet can have issued `atLeast` by now: tokens rise with the wall clock, and what is
   * raised is never lowered.
   */
  highestToken(resource?: string, atLeast?: number): Promise<number>;
  /**
   * For the recovery of a store: the names of all resources that have had a lease within
   * `retentionMs`, perhaps with others. Rejects with `LOCK_NO_QUORUM` if too few nodes answered.
   */
  listResources(): Promise<readonly string[]>;
  /**
   * Raises a number under a name of the caller's choice to at least `atLeast` on a quorum, and
   * resolves with the highest that a quorum knows. It only rises, and is kept for ever; 0 only
   * reads. Rejects with `LOCK_NO_QUORUM` if too few nodes answered.
   */
  mark(name: string, atLeast: number): Promise<number>;
}

/** The nodes as one locker has them open: which are members, which vote, and why none may be used. */
export interface OpenFleet {
  /**
   * The members: first in the order of configuration, named n1, n2, … Another array as soon as
   * other nodes are members.
   */
  readonly nodes: readonly LockNode[];
  /** The longest lease, once known. */
  readonly maxTtlMs: number | undefined;
  /**
   * Kept current; read before every acquisition. The nodes of a refused fleet answer every request
   * but a release with `unreachable`.
   */
  readonly refusal: FleetRefusal | undefined;
  /** Calls the one listener when `nodes` or `maxTtlMs` has become another. */
  onChange(listener: () => void): void;
  state(): FleetState;
  /**
   * Resolves once every node has been reached (or could not be) and every node that can be admitted
   * at once is. Nodes that must wait for maxTtlMs are admitted later, in the background. Never
   * rejects.
   */
  settled(): Promise<FleetState>;
  /** The resources that have a counter, by node. Never rejects. */
  listResources(): Promise<readonly Asked<readonly string[]>[]>;
  /** The leases of resources whose names begin with the prefix, by node. Never rejects. */
  listHeld(prefix: string): Promise<readonly Asked<StoredLeases>[]>;
  /** What these of the nodes say of themselves. Never rejects. */
  report(nodes: ReadonlySet<string>): Promise<readonly Asked<NodeReport>[]>;
  /** Raises a mark on every node, and tells what each stores now. Never rejects. */
  mark(name: string, atLeast: number): Promise<readonly Asked<number>[]>;
  members(): FleetMembers | undefined;
  reconfigure(change: MemberChange<ServerSource>, limits: ReconfigureOptions): Promise<FleetMembers>;
  foundWithout(absent: readonly string[]): Promise<FleetMembers>;
  /** Examines the configuration of every node. Never rejects. */
  probe(): Promise<readonly Finding[]>;
  close(): Promise<void>;
}

/** Something that is wrong or risky with a node or the fleet, and what to do about it. */
export interface Finding {
  /**
   * `error`: a promise or the service is at risk now. `warning`: it may be. `info`: good to know.
   */
  readonly severity: "error" | "warning" | "info";
  /** "fleet" for what is about all of them. */
  readonly node: string;
  /**
   * Stable: unreachable, refuses_writes, replica, password, acl, version, not_redis, quarantined,
   * unknown_format, members, untold, floor_ahead, same_server, fleet_mismatch, max_ttl, even_size,
   * eviction_policy, not_durable, replicated, clock_skew, settings_hidden, subscription.
   */
  readonly code: string;
  /** What is wrong, with numbers. */
  readonly message: string;
  /** What to do about it. */
  readonly remedy: string;
}

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
  /**
   * If `held`: that of the holder's lease, or one below while nodes do not answer. Otherwise the
   * highest stored for it on any node that answered; 0 if it never had one.
   */
  readonly token: number;
  /**
   * How many wait for it, as a quorum of nodes says: of each process the first of the callers that
   * want the same.
   */
  readonly waiting: number;
  /** What each node answered. */
  readonly ballots: readonly InspectBallot[];
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
  /** As in an inspection. */
  readonly token: number;
  /** As in an inspection. */
  readonly waiting: number;
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
}

/** Options of forceRelease. */
export interface ForceReleaseOptions {
  /** Why; published with the event. */
  readonly reason: string;
  /** The token of the lease that is meant, as `inspect` or `listHeld` shows it. Default: any. */
  readonly token?: number;
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

/** What a change waits for. */
export interface ChangeWaiting {
  /** In words. */
  readonly why: string;
  /** For how long, in milliseconds, where that is leases to be over; absent: not known. */
  readonly waitMs?: number;
}

/** Options of reconfigure: how long a change is tried. */
export interface ReconfigureOptions {
  /**
   * How long to try, in milliseconds. By default until nothing has come of it for 120 000, and on
   * top for as long as leases last that a change has to outwait.
   */
  readonly waitMs?: number | undefined;
  /** Called each time that it begins to wait for something else. */
  readonly onWait?: ((waiting: ChangeWaiting) => void) | undefined;
}
