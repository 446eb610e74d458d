// The nodes of one locker together: which of them are admitted, why the locker may not use them,
// what is wrong with them.
import type { Unreachable } from "./ballot.js";
import type { LockNode } from "./node.js";

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

export interface Fleet {
  /** In the order of configuration, named n1, n2, … */
  readonly nodes: readonly LockNode[];
  /**
   * Kept current; read before every acquisition. The nodes of a refused fleet answer every request
   * but a release with `unreachable`.
   */
  readonly refusal: FleetRefusal | undefined;
  state(): FleetState;
  /**
   * Resolves once every node has been reached (or could not be) and every node that can be admitted
   * at once is. Nodes that must wait for maxTtlMs are admitted later, in the background. Never
   * rejects.
   */
  settled(): Promise<FleetState>;
  /** The resources that have a counter, by node. Never rejects. */
  listResources(): Promise<readonly Asked<readonly string[]>[]>;
  /** Raises a mark on every node, and tells what each stores now. Never rejects. */
  mark(name: string, atLeast: number): Promise<readonly Asked<number>[]>;
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
   * Stable: unreachable, replica, password, acl, version, not_redis, quarantined, unknown_format,
   * same_server, fleet_mismatch, max_ttl, even_size, eviction_policy, not_durable, replicated,
   * clock_skew, settings_hidden, subscription.
   */
  readonly code: string;
  /** What is wrong, with numbers. */
  readonly message: string;
  /** What to do about it. */
  readonly remedy: string;
}
