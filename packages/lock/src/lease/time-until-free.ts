// When a resource that is held can become free at the earliest: what `retryAfterMs` says, and how
// long a waiter may sleep.
import type { EpochMoved, GrantBallot } from "../protocol/ballot.js";
import type { Lost } from "../protocol/outcome.js";
import type { Ballots } from "../quorum/round.js";
import type { QuorumRule } from "../quorum/tally.js";

/** In how many milliseconds, if it is held and enough nodes said for how long. */
export function retryAfterMs({ reason, ballots }: Lost, rule: QuorumRule): number | undefined {
  return reason === "held" ? freeInMs(ballots, rule) : undefined;
}

/**
 * By the time that the holders have left: until then the nodes that are free or run out first do
 * not make a quorum. undefined when too few nodes answered to tell.
 */
export function freeInMs(ballots: Ballots<GrantBallot | EpochMoved>, { quorum }: QuorumRule): number | undefined {
  let missing = quorum;
  const remaining: number[] = [];
  for (const ballot of ballots) {
    if (ballot?.kind === "granted" || ballot?.kind === "epoch_moved") missing--;
    else if (ballot?.kind === "held") remaining.push(ballot.remainingMs);
  }
  if (missing <= 0) return 0;
  remaining.sort((a, b) => a - b);
  return remaining[missing - 1];
}
