// The nodes of one locker together: which of them vote, why the locker may not vote on them, what is wrong with them.
import type { LockNode } from "./node.js";

/** Why this locker must not vote in this fleet. `ttl` deserves a RangeError, `mismatch` a FLEET_MISMATCH. */
export interface FleetRefusal {
  readonly kind: "mismatch" | "ttl";
  /** Stable; also the code of the doctor's finding. */
  readonly code: "same_server" | "fleet_mismatch" | "max_ttl";
  /** Names nodes, numbers and the remedy. */
  readonly message: string;
}

/** How each node stood when last heard. Every configured node is in exactly one of the three lists. */
export interface FleetState {
  readonly admitted: readonly string[];
  readonly quarantined: readonly { readonly node: string; readonly readyInMs?: number; readonly reason: string }[];
  readonly unreachable: readonly { readonly node: string; readonly cause: string }[];
  readonly refusal: FleetRefusal | undefined;
  /** The longest lease the fleet allows, once known. */
  readonly maxTtlMs: number | undefined;
}

export interface Fleet {
  /** In the order of configuration, named n1, n2, … */
  readonly nodes: readonly LockNode[];
  /** Costs nothing: look before every attempt. A refused fleet's nodes answer every question but release with `unreachable` anyway. */
  refusal(): FleetRefusal | undefined;
  state(): FleetState;
  /**
   * Resolves once every node has been met (or could not be) and what can be admitted at once has been admitted or bootstrapped. Nodes that must wait out
   * maxTtlMs are admitted later, in the background. Never rejects.
   */
  settled(): Promise<FleetState>;
  /** Asks every node about its configuration. Never rejects. */
  probe(): Promise<readonly Finding[]>;
  close(): Promise<void>;
}

/** Something that is wrong or risky with a node or the fleet, and what to do about it. */
export interface Finding {
  readonly severity: "error" | "warning" | "info";
  /** "fleet" for what is about all of them. */
  readonly node: string;
  /**
   * Stable: unreachable, replica, password, acl, version, not_redis, quarantined, same_server, fleet_mismatch, max_ttl, even_size, eviction_policy, not_durable, replicated,
   * clock_skew, settings_hidden, subscription.
   */
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}
