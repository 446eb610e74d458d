// The event of one acquisition, for its subscribers.
import type { Ballot } from "../protocol/ballot.js";
import { type AttemptEvent, inFleet } from "../protocol/events.js";
import type { Outcome } from "../protocol/outcome.js";
import { type Ballots, castBallots } from "../quorum/round.js";

interface Course {
  readonly resources: readonly string[];
  readonly rounds: number;
  readonly elapsedMs: number;
  readonly grants: Ballots<Ballot>;
  readonly fleet: string | undefined;
}

export function attemptEvent(outcome: Outcome, { resources, rounds, elapsedMs, grants, fleet }: Course): AttemptEvent {
  const won = outcome.kind === "won";
  return {
    resources,
    outcome: won ? "won" : outcome.reason,
    ...(won ? { token: outcome.token } : {}),
    rounds,
    elapsedMs,
    ballots: castBallots(grants),
    ...inFleet(fleet),
  };
}
