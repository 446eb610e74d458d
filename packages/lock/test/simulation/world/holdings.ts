// What callers do with the leases that they were given, and what the lease checker learns of it.
import type { Lease } from "#lock/protocol/locker.js";
import { validityMs } from "#lock/quorum.js";
import type { ClientProcess } from "../engine/client-process.js";
import { judgeLease } from "./ballot-check.js";
import type { Holding } from "./lease-checker.js";
import type { Surroundings } from "./surroundings.js";

/** A lease that a locker has just given. */
export interface Given {
  readonly client: ClientProcess;
  readonly driftFactor: number;
  readonly lease: Lease;
  readonly calledAt: number;
  readonly ttlMs: number;
}

export function given(around: Surroundings, { client, driftFactor, lease, calledAt, ttlMs }: Given): Holding {
  const { now, checker, rules, log } = around;
  const lastsMs = validityMs(ttlMs, driftFactor);
  const leftMs = lease.remainingMs();
  const asks = rules.countsFrom === "last reply" ? "itself" : "the lease";
  const holding: Holding = {
    client,
    lease,
    resources: lease.resources,
    token: lease.token,
    // It began when the lease's time began to count; a wall clock set ahead makes it look earlier.
    beganAt: Math.max(calledAt, client.trueMoment(leftMs - lastsMs)),
    grantedAt: now(),
    validUntilAt: client.trueMoment(asks === "itself" ? lastsMs : leftMs),
    endedAt: undefined,
    asks,
  };
  log?.(client.name, `has ${lease.resources.join(" and ")} with token ${lease.token} for ${leftMs.toFixed(1)} ms`);
  checker.given(holding);
  judgeLease(around, holding);
  return holding;
}

export async function extended(holding: Holding, ttlMs: number): Promise<void> {
  const { client, lease } = holding;
  const extending = lease.extend(ttlMs);
  holding.validUntilAt = Math.min(holding.validUntilAt, client.trueMoment(lease.remainingMs()));
  const { remainingMs } = await extending;
  holding.validUntilAt = client.trueMoment(remainingMs);
}

export async function released({ checker, now, log }: Surroundings, { client, lease, token }: Holding): Promise<void> {
  for (const holding of checker.holdings(lease.resource)) if (holding.lease === lease) holding.endedAt ??= now();
  log?.(client.name, `gives ${lease.resources.join(" and ")} back (token ${token})`);
  await lease.release();
}

/** Until the lease says that it is over. */
export async function untilEnd({ checker }: Surroundings, holding: Holding): Promise<void> {
  const { signal } = holding.lease;
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  if (holding.endedAt === undefined) checker.learnedOfEnd(holding);
}
