// Judges the leases that callers were given, with the true time and without the lock's code. T1, T2
// and L2 are judged when a lease is given, L1 when its holder learns of the end.
import type { Lease } from "#lock/protocol/locker.js";
import type { ClientProcess } from "../engine/client-process.js";

export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "W1" | "fence" | "issued" | "ballots" | "left behind" | "forgotten" | "rejection";
  readonly atMs: number;
  readonly what: string;
}

/** A lease in the hands of one caller. All moments are in true time. */
export interface Holding {
  readonly client: ClientProcess;
  readonly lease: Lease;
  readonly resources: readonly string[];
  readonly token: number;
  /** Not later than the first byte of the request left. */
  readonly beganAt: number;
  readonly grantedAt: number;
  /** By the holder's own clock. */
  validUntilAt: number;
  endedAt: number | undefined;
  /** Whence the holder knows that it holds: the lease, or (in a control) a deadline of its own. */
  readonly asks: "the lease" | "itself";
}

interface History {
  /** Moments of grants, rising; `highest` has the highest token up to each. */
  readonly grantedAts: number[];
  readonly highest: number[];
  readonly tokens: Set<number>;
  present: Holding[];
  /** Leases asked for before this moment may have been removed by force. */
  forcedAt: number;
}

/** Sums of fractions are not exact. */
const EXACT_MS = 1e-6;
/** A running holder learns of the end within this time: timers fire late. */
const LEARNS_WITHIN_MS = 2.5;

export class LeaseChecker {
  readonly violations: Violation[] = [];
  /** L2 is not promised where clocks are wild. */
  readonly #judgesExclusion: boolean;
  readonly #now: () => number;
  readonly #histories = new Map<string, History>();
  granted = 0;

  constructor(now: () => number, judges: "with exclusion" | "without exclusion") {
    this.#now = now;
    this.#judgesExclusion = judges === "with exclusion";
  }

  break(promise: Violation["promise"], what: string): void {
    this.violations.push({ promise, atMs: this.#now(), what });
  }

  /** A new lease. */
  given(holding: Holding): void {
    this.granted++;
    for (const resource of holding.resources) {
      const history = this.#of(resource);
      if (history.tokens.has(holding.token))
        this.break("T2", `token ${holding.token} of ${resource} was given twice, now to ${described(holding)}`);
      history.tokens.add(holding.token);
      this.#ordered(resource, history, holding);
      this.#alone(resource, history, holding);
      record(history, holding.grantedAt, holding.token);
    }
  }

  /** Tokens of leases asked for from now on must be above the fence. */
  fenced(resource: string, fence: number): void {
    record(this.#of(resource), this.#now(), fence);
  }

  /** A node removed a holder by force. */
  forced(resource: string): void {
    this.#of(resource).forcedAt = this.#now();
  }

  /** The fleet was founded anew, which does not wait for earlier leases: L2 does not cover them. */
  refounded(): void {
    for (const history of this.#histories.values()) history.forcedAt = this.#now();
  }

  /** The holder's own lease says that it is over. */
  learnedOfEnd(holding: Holding): void {
    const now = this.#now();
    holding.endedAt ??= now;
    const dueAt = Math.max(holding.validUntilAt, holding.client.continuedAt);
    if (now > dueAt + LEARNS_WITHIN_MS)
      this.break("L1", `${described(holding)} was told ${(now - dueAt).toFixed(3)} ms after its end, while ${holding.client.name} ran`);
  }

  holdings(resource: string): readonly Holding[] {
    return this.#histories.get(resource)?.present ?? [];
  }

  #ordered(resource: string, { grantedAts, highest }: History, holding: Holding): void {
    // Binary search for the last token given before this lease was asked for.
    let from = 0;
    let to = grantedAts.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((grantedAts[middle] as number) < holding.beganAt - EXACT_MS) from = middle + 1;
      else to = middle;
    }
    const before = highest[from - 1];
    if (before !== undefined && holding.token <= before)
      this.break(
        "T1",
        `${described(holding)} of ${resource} began after ${before} had been given (at ${grantedAts[from - 1]?.toFixed(3)})`,
      );
  }

  #alone(resource: string, history: History, holding: Holding): void {
    const now = this.#now();
    history.present = history.present.filter((other) => other.endedAt === undefined && other.validUntilAt > now + EXACT_MS);
    if (this.#judgesExclusion && holding.validUntilAt > now + EXACT_MS) {
      for (const other of history.present) {
        if (history.forcedAt >= Math.min(other.beganAt, holding.beganAt) || !believes(other)) continue;
        const togetherMs = Math.min(other.validUntilAt, holding.validUntilAt) - now;
        this.break("L2", `${described(holding)} of ${resource} was given while ${described(other)} had ${togetherMs.toFixed(3)} ms left`);
      }
    }
    history.present.push(holding);
  }

  #of(resource: string): History {
    let history = this.#histories.get(resource);
    if (history === undefined) {
      history = {
        grantedAts: [],
        highest: [],
        tokens: new Set(),
        present: [],
        forcedAt: Number.NEGATIVE_INFINITY,
      };
      this.#histories.set(resource, history);
    }
    return history;
  }
}

/** A dead process holds nothing; a stopped one reads its clock again when it continues. */
function believes({ client, lease, asks }: Holding): boolean {
  return client.state !== "dead" && (asks === "itself" || lease.remainingMs() > 0);
}

function record({ grantedAts, highest }: History, at: number, token: number): void {
  grantedAts.push(at);
  highest.push(Math.max(highest.at(-1) ?? 0, token));
}

function described({ client, token, beganAt, grantedAt }: Holding): string {
  return `${client.name}'s lease ${token} (asked for at ${beganAt.toFixed(3)}, given at ${grantedAt.toFixed(3)})`;
}
