// How a holder spends a lease, and what it notes of it. Every instant is read in the order that can only make the lease look shorter and its attempt look earlier:
// a violation that is found is one.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { setTimeout as sleep } from "node:timers/promises";
import { channelNames, type RenewalEvent } from "@palisade/lock";
import type { Chance } from "../../harness/chance.js";
import { nowMs, type Tenure } from "../../history/lease-record.js";
import type { ClientOrders } from "./client-words.js";
import type { Held, Wish } from "./contender.js";

export interface Stay extends Wish {
  /** briefly: as most do · to the end: until it is told · asleep: stopped past its end · renewing: for longer than its ttl. */
  readonly how: "briefly" | "to the end" | "asleep" | "renewing";
  readonly holdMs: number;
}

export function planStay(chance: Chance, { leases, longStays, ttlMs, longStayTtlMs, maxTtlMs }: ClientOrders): Stay {
  if (!chance.happens(longStays / leases))
    return { how: "briefly", ttlMs, renew: false, holdMs: chance.happens(0.5) ? 0 : chance.between(1, 2) };
  const how = chance.one(["to the end", "to the end", "asleep", "renewing"] as const);
  if (how === "to the end") return { how, ttlMs: longStayTtlMs, renew: false, holdMs: maxTtlMs * 4 };
  if (how === "asleep") return { how, ttlMs: longStayTtlMs, renew: false, holdMs: longStayTtlMs + chance.between(20, 300) };
  return { how, ttlMs: longStayTtlMs, renew: true, holdMs: longStayTtlMs * (1 + chance.next() * 2) };
}

/** Holds it as planned, gives it back, and says how it was. */
export async function spend(held: Held, stay: Stay, { client, sleepFor }: { client: number; sleepFor: (ms: number) => Promise<void> }) {
  const grantedAt = nowMs();
  let validUntilAt = deadline(held);
  // The lock counts from before the first byte left: lease.remainingMs() = that moment + ttl − drift − now.
  const beganAt = Math.min(grantedAt, validUntilAt - (stay.ttlMs - stay.ttlMs * 0.01 - 2));
  let toldAt: number | undefined;
  const told = new AbortController();
  const onEnd = (): void => {
    toldAt = nowMs();
    told.abort();
  };
  if (stay.how !== "briefly") held.signal.addEventListener("abort", onEnd, { once: true });
  if (held.signal.aborted) onEnd();
  const onRenewal = (event: unknown): void => {
    // A lease that had ended before it was heard of is no longer for it.
    if ((event as RenewalEvent).token === held.token && held.remainingMs() > 0) validUntilAt = Math.max(validUntilAt, deadline(held));
  };
  if (stay.renew) subscribe(channelNames.renewal, onRenewal);

  if (stay.how === "asleep") await sleepFor(stay.holdMs);
  else if (stay.holdMs > 0) await sleep(stay.holdMs, undefined, { signal: told.signal }).catch(nameAbort);

  if (stay.renew) unsubscribe(channelNames.renewal, onRenewal);
  const releasedAt = nowMs();
  held.signal.removeEventListener("abort", onEnd);
  await held.release();
  return {
    client,
    token: held.token,
    beganAt,
    grantedAt,
    validUntilAt,
    releasedAt,
    ...(toldAt === undefined ? {} : { toldAt }),
  } satisfies Tenure;
}

function deadline(held: Held): number {
  const at = nowMs();
  return at + held.remainingMs();
}

// The lease ended before the holder had planned to.
function nameAbort(error: Error): "told" {
  if (error.name === "AbortError") return "told";
  throw error;
}
