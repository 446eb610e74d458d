// Judges what callers were given, while it happens. Knows the true time; knows nothing of how the lock works. T1, T2 and L2 are judged at the moment a lease is given, L1 at
// the moment its holder is told of the end.
import type { Lease } from "#lock/protocol/lease.js";
import type { ClientProcess } from "../engine/client-process.js";

export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "fence" | "issued" | "ballots" | "left behind" | "forgotten" | "rejection";
  readonly atMs: number;
  readonly what: string;
}

/** What one caller holds, and how it came to it; moments in true time. */
export interface Claim {
  readonly client: ClientProcess;
  readonly lease: Lease;
  readonly resources: readonly string[];
  readonly token: number;
  /** Not after the first byte of the question left. */
  readonly beganAt: number;
  readonly grantedAt: number;
  /** By its own clocks. */
  validUntilAt: number;
  endedAt: number | undefined;
  /** What the holder asks whether it still has it: the lease, or (in a control) a deadline that it reckoned itself. */
  readonly asks: "the lease" | "itself";
}

interface History {
  /** Rising, with the highest token given so far. */
  readonly grantedAts: number[];
  readonly highest: number[];
  readonly tokens: Set<number>;
  present: Claim[];
  /** Whoever asked before this moment may have been removed by force. */
  forcedAt: number;
}

/** Sums of fractions are not exact. */
const EXACT_MS = 1e-6;
/** A running holder is told so much later at most: timers count whole milliseconds, and go off a little late. */
const TOLD_WITHIN_MS = 2.5;

export class Register {
  readonly violations: Violation[] = [];
  /** Whether L2 is promised in this world. */
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
  given(claim: Claim): void {
    this.granted++;
    for (const resource of claim.resources) {
      const history = this.#of(resource);
      if (history.tokens.has(claim.token)) this.break("T2", `token ${claim.token} of ${resource} was given twice, now to ${told(claim)}`);
      history.tokens.add(claim.token);
      this.#ordered(resource, history, claim);
      this.#alone(resource, history, claim);
      record(history, claim.grantedAt, claim.token);
    }
  }

  /** The lease of another claim, in other hands: the same token, and both may believe in it. */
  handedOver(claim: Claim): void {
    for (const resource of claim.resources) this.#of(resource).present.push(claim);
  }

  /** Whoever asks from now on must have more than this. */
  fenced(resource: string, fence: number): void {
    record(this.#of(resource), this.#now(), fence);
  }

  /** A holder was removed, somewhere. */
  forced(resource: string): void {
    this.#of(resource).forcedAt = this.#now();
  }

  /** The fleet was founded anew. That does not wait for leases of before, which is where L2 ends. */
  refounded(): void {
    for (const history of this.#histories.values()) history.forcedAt = this.#now();
  }

  /** The holder's own lease said that it is over. */
  told(claim: Claim): void {
    const now = this.#now();
    claim.endedAt ??= now;
    const dueAt = Math.max(claim.validUntilAt, claim.client.continuedAt);
    if (now > dueAt + TOLD_WITHIN_MS)
      this.break("L1", `${told(claim)} was told ${(now - dueAt).toFixed(3)} ms after its end, while ${claim.client.name} ran`);
  }

  claims(resource: string): readonly Claim[] {
    return this.#histories.get(resource)?.present ?? [];
  }

  #ordered(resource: string, { grantedAts, highest }: History, claim: Claim): void {
    // The last that was given before this one was asked for.
    let from = 0;
    let to = grantedAts.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((grantedAts[middle] as number) < claim.beganAt - EXACT_MS) from = middle + 1;
      else to = middle;
    }
    const before = highest[from - 1];
    if (before !== undefined && claim.token <= before)
      this.break("T1", `${told(claim)} of ${resource} began after ${before} had been given (at ${grantedAts[from - 1]?.toFixed(3)})`);
  }

  #alone(resource: string, history: History, claim: Claim): void {
    const now = this.#now();
    history.present = history.present.filter((other) => other.endedAt === undefined && other.validUntilAt > now + EXACT_MS);
    if (this.#judgesExclusion && claim.validUntilAt > now + EXACT_MS) {
      for (const other of history.present) {
        if (history.forcedAt >= Math.min(other.beganAt, claim.beganAt) || other.token === claim.token || !believes(other)) continue;
        const togetherMs = Math.min(other.validUntilAt, claim.validUntilAt) - now;
        this.break("L2", `${told(claim)} of ${resource} was given while ${told(other)} had ${togetherMs.toFixed(3)} ms left`);
      }
    }
    history.present.push(claim);
  }

  #of(resource: string): History {
    let history = this.#histories.get(resource);
    if (history === undefined) {
      history = { grantedAts: [], highest: [], tokens: new Set(), present: [], forcedAt: Number.NEGATIVE_INFINITY };
      this.#histories.set(resource, history);
    }
    return history;
  }
}

/** A process that died holds nothing; one that is stopped will look again when it continues. */
function believes({ client, lease, asks }: Claim): boolean {
  return client.state !== "dead" && (asks === "itself" || lease.remainingMs() > 0);
}

function record({ grantedAts, highest }: History, at: number, token: number): void {
  grantedAts.push(at);
  highest.push(Math.max(highest.at(-1) ?? 0, token));
}

function told({ client, token, beganAt, grantedAt }: Claim): string {
  return `${client.name}'s lease ${token} (asked for at ${beganAt.toFixed(3)}, given at ${grantedAt.toFixed(3)})`;
}
