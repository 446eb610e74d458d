// The locker: each public call reads what it was given, waits for the first contact with the nodes,
// and calls the verb that does it.
import { FleetCalls } from "./fleet-calls.js";
import { HeldLease } from "./lease/held-lease.js";
import { inspectAll, leaderIn, summarize } from "./lease/inspect.js";
import { describeLost } from "./lease/messages.js";
import { LockerState, retryAfterMs } from "./lease/state.js";
import { shown } from "./options/option.js";
import { type Policy, readLeaseRequest, readResource } from "./options/policy.js";
import type { Clock } from "./platform/clock.js";
import { LockError } from "./protocol/ballot.js";
import type { Fleet, FleetState, Inspection, OpenFleet } from "./protocol/fleet.js";
import type {
  AcquireOptions,
  Attempted,
  Campaign,
  CampaignOptions,
  Leader,
  Lease,
  Locker,
  Resources,
  TermRoutine,
  TryAcquireOptions,
  UsingOptions,
} from "./protocol/locker.js";
import { LeaderCampaign } from "./waiting/campaign.js";
import { FirstContact } from "./waiting/first-contact.js";
import { AcquireCalls } from "./waiting/wait-for-lease.js";

type Routine<Result> = (lease: Lease) => Result | PromiseLike<Result>;

export class QuorumLocker implements Locker {
  readonly fleet: Fleet;
  readonly #state: LockerState;
  readonly #firstContact: FirstContact;
  readonly #calls: AcquireCalls;
  #closing: Promise<void> | undefined;

  constructor(fleet: OpenFleet, policy: Policy, clock: Clock) {
    this.#state = new LockerState(fleet, policy, clock);
    this.#firstContact = new FirstContact(this.#state);
    this.#calls = new AcquireCalls(this.#state, this.#firstContact);
    this.fleet = new FleetCalls(this.#state, this.#firstContact);
  }

  async acquire(resources: Resources, options?: AcquireOptions): Promise<Lease> {
    return this.#calls.waitFor(readLeaseRequest("acquire", this.#state.policy, { resources, options }));
  }

  async tryAcquire(resources: Resources, options?: TryAcquireOptions): Promise<Attempted> {
    const { policy } = this.#state;
    const request = readLeaseRequest("tryAcquire", policy, { resources, options });
    const outcome = await this.#calls.tryOnce(request);
    if (outcome instanceof HeldLease) return { ok: true, lease: outcome, ballots: outcome.ballots };
    if (outcome instanceof LockError) return { ok: false, reason: "too_slow", message: outcome.message, ballots: outcome.ballots };
    const { reason, ballots } = outcome;
    const retryMs = retryAfterMs(outcome, policy);
    const retry = retryMs === undefined ? {} : { retryAfterMs: retryMs };
    return { ok: false, reason, ...retry, message: describeLost(request.resources, outcome, this.#state), ballots };
  }

  async using<Result>(resources: Resources, ...rest: [UsingOptions | undefined, Routine<Result>] | [Routine<Result>]): Promise<Result> {
    const [options, routine] = rest.length === 1 ? [undefined, rest[0]] : rest;
    checkRoutine("using", routine);
    const lease = await this.#calls.waitFor(readLeaseRequest("using", this.#state.policy, { resources, options }));
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
    const request = readLeaseRequest("campaign", this.#state.policy, { resources: resource, options });
    return new LeaderCampaign(this.#calls, request, routine);
  }

  async leader(resource: string): Promise<Leader | null> {
    return leaderIn(await this.inspect(resource), this.#state);
  }

  async inspect(resource: string): Promise<Inspection> {
    readResource(resource);
    await this.#firstContact.pass([resource]);
    return summarize(resource, await inspectAll(this.#state, resource), this.#state.policy);
  }

  ready(): Promise<FleetState> {
    return this.#firstContact.ready();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#state.wakeAll();
    await this.#state.deadlines.close();
    await this.#state.inFlight.idle();
    await this.#state.fleet.close();
  }
}

function checkRoutine(call: string, routine: unknown): void {
  if (typeof routine !== "function") throw new TypeError(`${call} needs a routine to run, not ${shown(routine)}`);
}
