// What a run leaves behind for the checkers to judge: plain data. All instants are milliseconds of the machine's monotonic clock, which is one for all of its
// processes, so that events of different processes can be compared. It must not judge anything.

/** One lease, as its holder saw it. */
export interface Tenure {
  readonly client: number;
  readonly token: number;
  /** When the attempt that won it began, or a little before. Never after. */
  readonly beganAt: number;
  /** When the holder had it in hand. */
  readonly grantedAt: number;
  /** Until when it was good, by the holder's own deadline, or a little less. Later if it was renewed. */
  readonly validUntilAt: number;
  /** When the holder began to give it back; absent if it never did. */
  readonly releasedAt?: number;
  /** When the holder was told that it had ended, if that came before the release. */
  readonly toldAt?: number;
}

/** A time in which a client did not run: it was stopped, or the machine had no time for it. */
export interface Stall {
  readonly client: number;
  readonly fromAt: number;
  readonly untilAt: number;
}

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
  /** Lock keys that were there after everybody was done and the longest ttl had passed, as "node key". */
  readonly leftBehind: readonly string[];
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
