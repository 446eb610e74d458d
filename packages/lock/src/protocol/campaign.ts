// The election of a leader as a candidate sees it; implemented by waiting/campaign.ts.

/** For how long and how a process stands for election. Times are in milliseconds. */
export interface CampaignOptions {
  /**
   * How long a term outlasts a leader that has died or cannot reach the nodes. Default: the
   * locker's ttlMs. A term is renewed for as long as the routine runs.
   */
  readonly ttlMs?: number;
  /** A term ends after so long, and others have their turn. Default: no limit. */
  readonly maxHoldMs?: number;
  /** Ends the campaign, like `stop`. */
  readonly signal?: AbortSignal;
}

/** The time for which this process leads. At most one process has one at a time. */
export interface Term {
  /** What is led: the name of the campaign. */
  readonly resource: string;
  /**
   * The fencing token of this term, higher than that of every earlier one. Send it with every
   * write: a leader may be stopped right after any check.
   */
  readonly token: number;
  /**
   * Aborts when the term ends: its time ran out, it was taken away, resigned or stopped. The reason
   * is a LockError `LEASE_LOST`.
   */
  readonly signal: AbortSignal;
  /** Whether this process leads at this very moment, by our own clock. */
  readonly leads: boolean;
  /** Milliseconds until the end of the term if it is not renewed; 0 when it has ended. */
  remainingMs(): number;
  /** Throws LockError `LEASE_LOST` unless this process leads now. */
  assertLeads(): void;
}

/** Does what a leader does, until it is done or the term's signal aborts. */
export type TermRoutine = (term: Term) => unknown;

/** One process's candidature. Disposing of it stops it. */
export interface Campaign extends AsyncDisposable {
  /** What is led. */
  readonly resource: string;
  /** The present term of this process, if it leads. */
  readonly term: Term | undefined;
  /**
   * Resolves when the campaign has been stopped or its locker closed, and the last routine has
   * settled. Rejects with what a routine threw while it led, and with LockError `FLEET_MISMATCH` or
   * RangeError where the nodes cannot be used; then this process stands for election no more.
   */
  readonly ended: Promise<void>;
  /**
   * Gives up the present term: aborts its signal, waits for the routine, and lets another process
   * lead. This process stands for election again after a pause. No-op where it does not lead. Not
   * to be awaited by the routine, for which it waits; a routine that returns ends its term.
   */
  resign(): Promise<void>;
  /**
   * Gives up the present term, and stands for election no more. Resolves like `ended`. Not to be
   * awaited by the routine.
   */
  stop(): Promise<void>;
}

/** Who leads. */
export interface Leader {
  /** The label of its locker. */
  readonly label: string;
  /** The highest token that the nodes have stored: its term has this one, or one below. */
  readonly token: number;
  /** For how long its term lasts at most if it is not renewed, in milliseconds. */
  readonly remainingMs: number;
}
