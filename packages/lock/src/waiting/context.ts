// What every part of waiting is given: the context of the algorithm, and who else of this process wants the same.
import type { LeaseContext } from "../lease/context.js";
import type { Lost } from "../protocol/outcome.js";
import type { Turnstile } from "./local-queue.js";
import type { Dormitory } from "./wait-budget.js";
import type { Courtesy } from "./yield-after-release.js";

export interface WaitContext extends LeaseContext {
  readonly courtesy: Courtesy;
  readonly turnstile: Turnstile<Lost>;
  readonly dormitory: Dormitory;
}
