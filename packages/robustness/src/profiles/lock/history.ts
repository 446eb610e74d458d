// What a run of the lock alone leaves behind for the checkers to judge: plain data. It must not judge anything.
import type { Span, Stall, Tenure } from "../../history/lease-record.js";

/** What one node had stored at one moment. */
export interface CounterSample {
  readonly node: string;
  /** Counts how often the node has lost its memory. */
  readonly memory: number;
  readonly floor: number;
  readonly counter: number;
}

export interface History {
  readonly tenures: readonly Tenure[];
  readonly stalls: readonly Stall[];
  /** In the order in which they were taken. */
  readonly samples: readonly CounterSample[];
  /** When clocks of nodes were set forward. */
  readonly leaps: readonly Span[];
  /** Lock keys that were there after everybody was done and the longest ttl had passed, as "node key". */
  readonly leftBehind: readonly string[];
}
