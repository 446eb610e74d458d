// What every part of waiting is given: the context of the algorithm, and the other callers of this
// process.
import type { LeaseContext } from "../lease/context.js";
import type { LocalQueue } from "./local-queue.js";
import type { QueuedResources } from "./queued-resources.js";
import type { LookTimer, Waiters } from "./wait-budget.js";

export interface WaitContext extends LeaseContext {
  readonly queuedResources: QueuedResources;
  readonly looks: LookTimer;
  /** By what is wanted: of the callers that want the same only the first asks the nodes. */
  readonly resourceQueue: LocalQueue;
  readonly waiters: Waiters;
  /** See Fleet. */
  readonly untilHeard?: ((why: unknown) => Promise<void> | undefined) | undefined;
  /** Called when other nodes are members. */
  readonly onMembers: Set<() => void>;
}
