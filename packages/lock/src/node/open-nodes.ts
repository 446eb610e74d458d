// The door of the node layer: from what the user configured to the nodes that the control flow may question, and the fleet they form. It wires; it decides
// nothing itself. Import nothing else of src/node from outside, besides the interfaces in lock-node.ts and node-events.ts.
import type { Cluster, Redis, RedisOptions } from "ioredis";
import type { Clock } from "../clock.js";
import type { LockNode } from "./lock-node.js";
import type { NodeEvent } from "./node-events.js";

/** redis:// or rediss:// URL, ioredis options, or the user's own instance (which is duplicated, never used or closed). */
export type NodeSource = string | RedisOptions | Redis | Cluster;

export interface OpenNodesOptions {
  readonly nodes: readonly NodeSource[];
  readonly namespace: string;
  /** A node that has not answered by then is unreachable for this question. */
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Stored with a new fleet; a fleet that stored less refuses us. */
  readonly maxTtlMs: number;
  /** How long a counter outlives its last use. At least maxTtlMs. */
  readonly retentionMs: number;
  readonly clock: Clock;
  /** Must not throw. */
  readonly onEvent: (event: NodeEvent) => void;
}

/** Why this locker must not vote in this fleet. `ttl` deserves a RangeError, `mismatch` a FLEET_MISMATCH. */
export interface FleetRefusal {
  readonly kind: "mismatch" | "ttl";
  /** Names nodes, numbers and the remedy. */
  readonly message: string;
}

/** How each node stood when last heard. Every configured node is in exactly one of the three lists. */
export interface FleetState {
  readonly admitted: readonly string[];
  readonly quarantined: readonly { readonly node: string; readonly readyInMs?: number; readonly reason: string }[];
  readonly unreachable: readonly { readonly node: string; readonly cause: string }[];
  readonly refusal: FleetRefusal | undefined;
}

export interface Finding {
  readonly severity: "error" | "warning" | "info";
  readonly node: string;
  /** Stable: eviction_policy, not_durable, same_server, replica, clock_skew, version, acl, fleet_mismatch, unreachable, quarantined… */
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
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

export function openNodes(options: OpenNodesOptions): Fleet {
  throw new Error(`not built yet: ${options.namespace}`);
}
