// What a caller sees of its world.
import type { LeaseChecker } from "./lease-checker.js";
import type { Rules } from "./rules.js";
import type { Scenario } from "./scenario.js";
import type { ServerOracle } from "./server-oracle.js";
import type { TurnChecker } from "./turn-checker.js";

export interface Surroundings {
  readonly now: () => number;
  readonly scenario: Scenario;
  readonly checker: LeaseChecker;
  readonly rules: Rules;
  readonly oracle: ServerOracle;
  /** Where all wait for their turns. */
  readonly turns: TurnChecker | undefined;
  phase(): "storm" | "recovery" | "calm";
  readonly log: ((actor: string, what: string) => void) | undefined;
}
