// A lease and a standstill as a process of a run saw them: plain data, the same for every kind of fault run. All instants are milliseconds of the machine's monotonic
// clock, which is one for all of its processes, so that events of different processes can be compared. It must not judge anything.

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

export interface Span {
  readonly fromAt: number;
  readonly untilAt: number;
}

/** What was found to be wrong. */
export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "G1" | "G2" | "G3" | "G4" | "order" | "counters" | "end";
  readonly what: string;
  /** When it showed, where that is known. */
  readonly at?: number;
  readonly resource?: string;
  /** How many updates are lost by it. */
  readonly lostUpdates?: number;
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
