// The event of one acquisition, built only for subscribers.
import type { Ballot } from "../protocol/ballot.js";
import { channels } from "../protocol/events.js";
import type { Outcome } from "../protocol/outcome.js";
import { type Ballots, castBallots } from "../quorum/round.js";

export interface AttemptFacts {
  readonly resources: readonly string[];
  readonly rounds: number;
  readonly elapsedMs: number;
  readonly grants: Ballots<Ballot>;
}

export function publishAttempt(outcome: Outcome, { resources, rounds, elapsedMs, grants }: AttemptFacts): void {
  const won = outcome.kind === "won";
  channels.attempt.publish({
    resources,
    outcome: won ? "won" : outcome.reason,
    ...(won ? { token: outcome.token } : {}),
    rounds,
    elapsedMs,
    ballots: castBallots(grants),
  });
}
