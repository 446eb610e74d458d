// Makes errors of attempts that were lost and of patience that ended: tells held from unreachable from too slow, also for callers who never had their turn.

import type { Policy } from "../options/policy.js";
import { codeOf, LockError } from "../protocol/errors.js";
import type { Lost } from "../protocol/outcome.js";
import { describeBallots, describeLost, nameAll } from "./messages.js";
import type { RenewalAnswer } from "./renew.js";

/** The last attempt of a caller whose patience, or number of tries, is used up. */
export function lossError(resources: readonly string[], lost: Lost, policy: Policy): LockError {
  return new LockError(codeOf(lost.reason), describeLost(resources, lost, policy), details(resources, lost));
}

/** A caller whose patience ended behind others of this process: it is told what the one in front learnt. */
export function queueError(
  resources: readonly string[],
  waited: { readonly inFront: number; readonly last: Lost | undefined },
  policy: Policy,
): LockError {
  const { inFront, last } = waited;
  const account = `no turn for ${nameAll(resources)} within waitMs: ${inFront} of this process ${inFront === 1 ? "was" : "were"} in front`;
  // Nobody in front has learnt anything yet: not even one attempt fitted into the time.
  if (last === undefined) return new LockError("LOCK_TOO_SLOW", `${account}, and the nodes had not answered`, { resources });
  return new LockError(
    codeOf(last.reason),
    `${account}; at the last attempt ${describeLost(resources, last, policy)}`,
    details(resources, last),
  );
}

/** A caller whose patience ended behind others of this process that were on their way to the nodes. */
export function crowdError(resources: readonly string[], attemptsAtOnce: number): LockError {
  const account = `${nameAll(resources)} was not asked for in time: ${attemptsAtOnce} other attempts of this process were under way all the while`;
  return new LockError("LOCK_TOO_SLOW", account, { resources });
}

/** One call too many. Nobody was asked, so nobody is said to hold anything. */
export function tooManyError(resources: readonly string[], maxWaiters: number): LockError {
  return new LockError(
    "LOCK_TOO_SLOW",
    `${nameAll(resources)} was not asked for: ${maxWaiters} calls (maxWaiters) are under way in this locker already; wait for some of them, or raise maxWaiters`,
    { resources },
  );
}

function details(resources: readonly string[], lost: Lost): ConstructorParameters<typeof LockError>[2] {
  const retry = lost.reason === "held" && lost.freeInMs !== undefined ? { retryAfterMs: lost.freeInMs } : {};
  return { resources, ballots: [...lost.ballots, ...lost.seals], ...retry };
}

/** A lease that could not be adopted. */
export function adoptionError(told: { readonly resources: readonly string[]; readonly token: number }, answer: RenewalAnswer): LockError {
  const { resources, token } = told;
  const { ballots, verdict } = answer;
  const account = describeBallots(ballots);
  if (verdict === "lost") {
    const message = `the lease of ${nameAll(resources)} with token ${token} is no longer held: ${account}`;
    return new LockError("LEASE_LOST", message, { resources, ballots, reason: "taken" });
  }
  const message = `the lease of ${nameAll(resources)} with token ${token} was not adopted: too few nodes could be asked; ${account}`;
  return new LockError("LOCK_NO_QUORUM", message, { resources, ballots });
}
