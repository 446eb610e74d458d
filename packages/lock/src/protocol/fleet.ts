// The nodes of one locker together: which of them are admitted, why the locker may not use them,
// what is wrong with them.
import type { Unreachable } from "./ballot.js";
import type { ChangeLimits } from "./change-limits.js";
import type { LockError } from "./errors.js";
import type { FleetListing } from "./fleet-list.js";
import type { LockNode } from "./node.js";
import type { NodeSource } from "./node-source.js";

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
  /** Rises with each change; 0 where the nodes do not store it (records of format 1). */
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
export type MemberChange =
  | { readonly add: NodeSource }
  | { readonly remove: string }
  | { readonly replace: string; readonly by: NodeSource }
  | { readonly maxTtlMs: number };

/** Options of reconfigure and changeFleets. */
export interface ReconfigureOptions extends ChangeLimits {
  /** Whose members, where the locker has several fleets. */
  readonly fleet?: string;
}

export interface Fleet {
  /** Where this is one of several. */
  readonly name?: string | undefined;
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
  reconfigure(change: MemberChange, limits: ChangeLimits): Promise<FleetMembers>;
  foundWithout(absent: readonly string[]): Promise<FleetMembers>;
  /** Examines the configuration of every node. Never rejects. */
  probe(): Promise<readonly Finding[]>;
  /** Among which fleets resources are spread, where this is one of several. */
  readonly listing: FleetListing;
  /** Of one of several fleets: why it does not serve these resources; undefined if it does. */
  elsewhere?: ((resources: readonly string[]) => LockError | undefined) | undefined;
  /**
   * Of one of several fleets: what is to be waited for before it is asked again, where `elsewhere`
   * only said that it is not known yet.
   */
  untilHeard?: ((why: unknown) => Promise<void> | undefined) | undefined;
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
   * unknown_format, members, floor_ahead, same_server, fleet_mismatch, max_ttl, even_size,
   * eviction_policy, not_durable, replicated, clock_skew, settings_hidden, subscription.
   */
  readonly code: string;
  /** What is wrong, with numbers. */
  readonly message: string;
  /** What to do about it. */
  readonly remedy: string;
}
