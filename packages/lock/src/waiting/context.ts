// What every part of waiting is given: the context of the algorithm, and the other callers of this
// process.
import type { LeaseContext } from "../lease/context.js";
import type { LocalQueue } from "./local-queue.js";
import type { Waiters } from "./wait-budget.js";
import type { YieldAfterRelease } from "./yield-after-release.js";

export interface WaitContext extends LeaseContext {
  readonly yieldAfterRelease: YieldAfterRelease;
  /** By what is wanted: of the callers that want the same only the first asks the nodes. */
  readonly resourceQueue: LocalQueue;
  readonly waiters: Waiters;
  /** Called when other nodes are members. */
  readonly onMembers: Set<() => void>;
}
