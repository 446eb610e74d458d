// A process that has released a resource others wait for lets them go first. Without it a process
// that takes the same lock in a loop wins every time, because its request is sent before the others
// have heard of the release. Best effort: it only delays.

import type { Clock } from "../platform/clock.js";
import type { ReleaseBallot } from "../protocol/ballot.js";
import type { Ballots } from "../quorum/round.js";
import { YIELD_MS } from "./retry-delay.js";

/**
 * Remembered releases. Beyond the bound all are forgotten: that only costs others their head start.
 */
const MAX_YIELDS = 1_024;

export class YieldAfterRelease {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();
  readonly #waitsHere: (resource: string) => boolean;

  constructor(clock: Clock, waitsHere: (resource: string) => boolean) {
    this.#clock = clock;
    this.#waitsHere = waitsHere;
  }

  released(resources: readonly string[], ballots: Ballots<ReleaseBallot>): void {
    let listeners = 0;
    for (const ballot of ballots) if (ballot?.kind === "released" && ballot.listeners > listeners) listeners = ballot.listeners;
    if (listeners === 0) return;
    for (const resource of resources) {
      if (listeners > (this.#waitsHere(resource) ? 1 : 0)) this.#yield(resource);
    }
  }

  /** How long a caller that has not waited yet leaves these resources to others. */
  dueMs(resources: readonly string[]): number {
    if (this.#until.size === 0) return 0;
    const now = this.#clock.monotonicMs();
    let dueMs = 0;
    for (const resource of resources) {
      const until = this.#until.get(resource);
      if (until === undefined) continue;
      if (until <= now) this.#until.delete(resource);
      else dueMs = Math.max(dueMs, until - now);
    }
    return dueMs;
  }

  #yield(resource: string): void {
    if (this.#until.size >= MAX_YIELDS) this.#until.clear();
    this.#until.set(resource, this.#clock.monotonicMs() + YIELD_MS);
  }
}
