// Takes a lock from the holder that the operator was shown, and raises the fence of the store, with
// the reason, so that the old holder's writes are refused from then on.
import { z } from "zod";
import { MAX_TOKEN } from "../fence/verdict.js";
import { MAX_NAME_BYTES } from "../fence/write-request.js";
import type { FencedStore } from "../fenced-store.js";
import { Problem } from "../http/problem.js";
import { checkResourceName } from "../http/resource-name.js";
import { messageOf, type WatchedLock } from "./lock-watch.js";
import type { NotReleased, Released } from "./messages.js";

/** The order as it is sent: the holder and the token as the operator was shown them. */
export const releaseOrder = z.strictObject({
  resource: z.string().min(1).max(MAX_NAME_BYTES),
  reason: z.string().trim().min(1).max(1_000),
  /** Null where no holder has a quorum. */
  holder: z.string().max(MAX_NAME_BYTES).nullable(),
  token: z.int().min(0).max(MAX_TOKEN),
});

type ReleaseOrder = z.output<typeof releaseOrder> & { readonly by: string };

export async function takeAway(lock: WatchedLock, store: FencedStore, order: ReleaseOrder): Promise<Released | NotReleased | Problem> {
  const { resource, reason } = order;
  try {
    const { state, holder = null, token } = await lock.inspect(resource);
    if (state === "free" || holder !== order.holder || token !== order.token)
      return { released: false, because: sentenceOn(state, holder) };
    const { fence, removed } = await lock.forceRelease(resource, { reason });
    return { released: true, removed, fence, sealed: await raised(store, order, fence) };
  } catch (error) {
    return new Problem("unavailable", `The lock's nodes could not do it: ${messageOf(error)}`, { resource, retryAfterSeconds: 1 });
  }
}

function sentenceOn(state: string, holder: string | null): string {
  if (state === "free") return "Nobody holds it any more, so nothing was taken away.";
  return `It is held by ${holder ?? "nobody who has a quorum"} under another token by now, so nothing was taken away.`;
}

async function raised(store: FencedStore, { resource, reason, by }: ReleaseOrder, token: number): Promise<Released["sealed"]> {
  if (checkResourceName(resource) instanceof Problem) return "the store has no resource of such a name";
  const verdict = await store.raiseFence({ resource, token, reason, by });
  if (verdict.kind === "changed" || verdict.kind === "unchanged") return true;
  if (verdict.kind === "contention") return "another transaction held the row";
  if (verdict.kind === "outcome_unknown") return "the database did not say whether it was done";
  return "the database cannot be written to";
}
