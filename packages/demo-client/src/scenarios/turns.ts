// A claim that several stories share, with the fence and without it: what a lock can do about a worker that stands still, ours has done. Decides no ending.
import type { Story } from "../story.js";
import type { AcquireResult } from "../worker-protocol.js";

/** The leases of two workers, worker 1's first. */
export interface Leases {
  readonly older: AcquireResult;
  readonly newer: AcquireResult;
}

export function expectTurns(story: Story, { older, newer }: Leases): void {
  story.expect("worker 2 got the lock only when worker 1's lease was over", newer.grantedAt >= older.validUntilAt);
}
