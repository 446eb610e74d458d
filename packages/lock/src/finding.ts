// What an examination of the nodes can find. Findings are values: whether one of them stops the locker is decided where it is read.

/** One thing worth knowing about a node or about the fleet. */
export interface Finding {
  /** `error`: a promise of the lock does not hold. `warning`: it holds on weaker ground. `notice`: worth knowing. */
  readonly severity: "error" | "warning" | "notice";
  /** Stable, for machines: `eviction_policy`, `same_server_twice`, … */
  readonly code: string;
  /** The node it is about ("n1"…); absent when it is about the fleet. */
  readonly node?: string;
  /** What was found, with numbers. */
  readonly message: string;
  /** What to do about it. */
  readonly remedy: string;
}

/** Why this locker must not vote on these nodes at all. */
export interface FleetRefusal {
  /** `mismatch`: the nodes belong to another fleet, or are not N different servers. `ttl_too_long`: this locker's maxTtlMs is above the fleet's. */
  readonly kind: "mismatch" | "ttl_too_long";
  readonly message: string;
}
