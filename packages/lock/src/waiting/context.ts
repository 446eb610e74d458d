// What every part of waiting is given: the context of the algorithm, and who else of this process wants the same.
import type { LeaseContext } from "../lease/context.js";
import type { Lost } from "../protocol/outcome.js";
import type { LocalQueue } from "./local-queue.js";
import type { Waiters } from "./wait-budget.js";
import type { YieldAfterRelease } from "./yield-after-release.js";

export interface WaitContext extends LeaseContext {
  readonly yieldAfterRelease: YieldAfterRelease;
  readonly localQueue: LocalQueue<Lost>;
  readonly waiters: Waiters;
}
