// What is wrong, or risky, with how the nodes are configured. Only looks; each finding names the node and the remedy.
import type { Clock } from "../clock.js";
import type { Admission } from "./admission.js";
import type { RedisNode } from "./redis-node.js";

export interface Finding {
  readonly severity: "error" | "warning" | "info";
  readonly node: string;
  /** Stable: eviction_policy, not_durable, same_server, replica, clock_skew, version, acl, fleet_mismatch, unreachable, quarantined… */
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

export interface DoctorSettings {
  readonly nodes: readonly RedisNode[];
  readonly admission: Admission;
  readonly clock: Clock;
}

export async function probeFleet(_settings: DoctorSettings): Promise<readonly Finding[]> {
  return [];
}
