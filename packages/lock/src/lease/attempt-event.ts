// The event of one acquisition, made only for subscribers: published when the outcome is known and
// every node has answered.
import type { Ballot } from "../protocol/ballot.js";
import { channels } from "../protocol/events.js";
import type { Outcome } from "../protocol/outcome.js";
import { type Ballots, castBallots } from "../quorum/round.js";
import type { LeaseContext } from "./context.js";

export class AttemptReport {
  readonly #context: LeaseContext;
  readonly #resources: readonly string[];
  readonly #grants: Ballots<Ballot>;
  readonly #startedAt: number;
  #outcome: Outcome | undefined;
  #rounds = 1;
  #isComplete = false;

  constructor(context: LeaseContext, resources: readonly string[], grants: Ballots<Ballot>) {
    this.#context = context;
    this.#resources = resources;
    this.#grants = grants;
    this.#startedAt = context.clock.monotonicMs();
  }

  settled(outcome: Outcome, rounds: number): void {
    this.#outcome = outcome;
    this.#rounds = rounds;
    if (this.#isComplete) this.#publish(outcome);
  }

  /** Every node has answered. */
  completed(): void {
    this.#isComplete = true;
    if (this.#outcome !== undefined) this.#publish(this.#outcome);
  }

  #publish(outcome: Outcome): void {
    const won = outcome.kind === "won";
    channels.attempt.publish({
      resources: this.#resources,
      outcome: won ? "won" : outcome.reason,
      ...(won ? { token: outcome.token } : {}),
      rounds: this.#rounds,
      elapsedMs: this.#context.clock.monotonicMs() - this.#startedAt,
      ballots: castBallots(this.#grants),
    });
  }
}
