// Resources that others waited for when this process released them: its next caller takes a place
// in the queue with its first request, instead of being refused once more before it waits.
import type { Clock } from "../platform/clock.js";
import type { ReleaseBallot } from "../protocol/ballot.js";
import type { Ballots } from "../quorum/round.js";

const REMEMBERED_MS = 1_000;
/** Beyond the bound all are forgotten: that only costs a request. */
const MOST = 1_024;

export class QueuedResources {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  released(resources: readonly string[], ballots: Ballots<ReleaseBallot>): void {
    if (!ballots.some((ballot) => ballot?.kind === "released" && ballot.listeners > 0)) return;
    if (this.#until.size >= MOST) this.#until.clear();
    const until = this.#clock.monotonicMs() + REMEMBERED_MS;
    for (const resource of resources) this.#until.set(resource, until);
  }

  hasOneOf(resources: readonly string[]): boolean {
    if (this.#until.size === 0) return false;
    const now = this.#clock.monotonicMs();
    return resources.some((resource) => {
      const until = this.#until.get(resource);
      if (until === undefined || until > now) return until !== undefined;
      this.#until.delete(resource);
      return false;
    });
  }
}
