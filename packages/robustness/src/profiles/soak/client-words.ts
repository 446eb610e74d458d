// What a client process of the soak and the run say to each other. Plain data.
import type { Counts } from "./latency.js";
import type { SelfReading } from "./probe.js";

/** What a client can be told to do wrong, once per operation, so that the judge has something to find. */
export type Leak = "memory" | "timers" | "listeners" | "files";
export const leaks: readonly Leak[] = ["memory", "timers", "listeners", "files"];

/** Given to the client when it starts. */
export interface ClientOrders {
  readonly client: number;
  readonly seed: string;
  readonly redisUrls: readonly string[];
  readonly gatewayUrl: string;
  readonly namespace: string;
  readonly perSecond: number;
  readonly readingEveryMs: number;
  readonly leaks: readonly Leak[];
}

/** Whoever has not finished what it does by then says what that was, and fails. */
export type ToClient = { readonly kind: "go" } | { readonly kind: "leave"; readonly withinMs: number };

/** What is timed: taking a lock that nobody has, taking one that everybody wants, writing and reading through the gateway. */
export const timings = ["acquire", "wait", "write", "read"] as const;
export type Timing = (typeof timings)[number];

export interface ClientReading {
  readonly kind: "reading";
  readonly self: SelfReading;
  /** Calls of acquire that have not been answered yet. */
  readonly waiting: number;
  /** Since the last reading. */
  readonly operations: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly latencies: Readonly<Record<Timing, Counts>>;
}

export type FromClient = { readonly kind: "ready" } | ClientReading;
