// The calls that run a routine of the user's under a lease: the same for a locker over one fleet
// and for one over several.
import type { HeldLease } from "./lease/held-lease.js";
import { type LeaseRequest, readLeaseRequest, readResource } from "./options/lease-request.js";
import { shown } from "./options/option.js";
import type { Campaign, CampaignOptions, TermRoutine } from "./protocol/campaign.js";
import type { Lease } from "./protocol/lease.js";
import type { Locker, Resources, UsingOptions } from "./protocol/locker.js";
import { LeaderCampaign } from "./waiting/campaign.js";
import type { WaitContext } from "./waiting/context.js";
import { WaitBudget } from "./waiting/wait-budget.js";

type Routine<Result> = (lease: Lease) => Result | PromiseLike<Result>;

export abstract class RoutineCalls implements Pick<Locker, "using" | "campaign" | "close"> {
  protected abstract get waiting(): Pick<WaitContext, "clock" | "policy" | "waiters">;
  /** Waits for the lease; rejects as `acquire` does. */
  abstract waitFor(request: LeaseRequest): Promise<HeldLease>;
  abstract close(): Promise<void>;

  async using<Result>(resources: Resources, ...rest: [UsingOptions | undefined, Routine<Result>] | [Routine<Result>]): Promise<Result> {
    const [options, routine] = rest.length === 1 ? [undefined, rest[0]] : rest;
    checkRoutine("using", routine);
    const lease = await this.waitFor(readLeaseRequest("using", this.waiting.policy, { resources, options }));
    try {
      const result = await routine(lease);
      lease.assertLasted();
      return result;
    } finally {
      // Never throws, so the caller gets the routine's own error.
      await lease[Symbol.asyncDispose]();
    }
  }

  campaign(resource: string, routine: TermRoutine, options?: CampaignOptions): Campaign {
    readResource(resource);
    checkRoutine("campaign", routine);
    const { clock, policy, waiters } = this.waiting;
    const request = readLeaseRequest("campaign", policy, { resources: resource, options });
    const waitMs = policy.retry.maxDelayMs;
    const candidate = {
      resource,
      elect: (signal: AbortSignal) => this.waitFor({ ...request, signal }),
      rest: (signal: AbortSignal) => new WaitBudget(clock, waiters, { waitMs, signal }).sleep(waitMs),
    };
    return new LeaderCampaign(candidate, routine, request.signal);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function checkRoutine(call: string, routine: unknown): void {
  if (typeof routine !== "function") throw new TypeError(`${call} needs a routine to run, not ${shown(routine)}`);
}
