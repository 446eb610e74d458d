// The short way to be safe: acquire, seal, run, put, release. The seal comes before the read, so
// that no write of an older holder can land between what the routine saw and what it stores; the
// put carries sequence number 1 of a fresh lease, so it can be repeated when its outcome is
// unknown.
import type { GatewayClient } from "./gateway-client.js";
import type { LeaseLike } from "./request-format.js";
import type { Refusal, RefusalCode } from "./results.js";

export interface HeldLease extends LeaseLike, AsyncDisposable {}

/** The part of a locker that is needed; the lockers of @palisade/lock fit. */
export interface LockerLike<Options extends object = object> {
  acquire(resource: string, options?: Options): Promise<HeldLease>;
}

export interface WithResourceOptions {
  /** Passed on to acquire(); the lease is renewed while the routine runs. */
  readonly acquire?: object | undefined;
  readonly timeoutMs?: number | undefined;
}

export interface ResourceWork {
  /** Aborts when the lease is lost: a result returned after that is not stored. */
  readonly signal: AbortSignal;
  readonly lease: LeaseLike;
  /** The stored revision; 0 when nothing was ever written. */
  readonly rev: number;
}

/** The document was not stored, or it is unknown whether it was: `outcome` says which. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: RefusalCode;
  readonly outcome: Refusal["outcome"];
  constructor(
    message: string,
    readonly refusal: Refusal,
  ) {
    super(`${message}: ${refusal.code}. ${refusal.detail}`);
    this.code = refusal.code;
    this.outcome = refusal.outcome;
  }
}

/**
 * Stores what `routine` returns; stores nothing when it returns undefined or throws. Throws
 * GatewayError when the gateway refuses.
 */
export async function withResource<T, R extends T | undefined>(
  ...[locker, client, resource, routine, options = {}]: readonly [
    locker: LockerLike,
    client: Pick<GatewayClient, "seal" | "put">,
    resource: string,
    routine: (document: T | null, work: ResourceWork) => R | Promise<R>,
    options?: WithResourceOptions,
  ]
): Promise<{ readonly value: R; readonly rev: number; readonly token: number }> {
  const lease = await locker.acquire(resource, { renew: true, ...options.acquire });
  // Releasing never throws over an error of the routine.
  await using _release = lease;
  const sealed = await client.seal<T>(resource, { lease, timeoutMs: options.timeoutMs });
  if (!sealed.ok) throw new GatewayError(`${resource} could not be sealed with token ${lease.token}`, sealed);
  const value = await untilLost(lease, resource, async () => routine(sealed.value, { signal: lease.signal, lease, rev: sealed.rev }));
  if (value === undefined) return { value, rev: sealed.rev, token: lease.token };
  const stored = await client.put(resource, value, { lease, seq: 1, timeoutMs: options.timeoutMs });
  if (!stored.ok) throw new GatewayError(`${resource} was not stored with token ${lease.token}`, stored);
  return { value, rev: stored.rev, token: stored.token };
}

/**
 * Does not wait for a routine whose lease is lost; the routine reports a later error itself,
 * through the signal it was given.
 */
async function untilLost<R>(lease: LeaseLike, resource: string, run: () => Promise<R>): Promise<R> {
  const { signal } = lease;
  const lost = (): GatewayError =>
    new GatewayError(`the lease of ${resource} with token ${lease.token} was lost while the routine ran`, {
      ok: false,
      code: "lease_lost",
      detail: "Nothing was stored.",
      outcome: "not_applied",
      attempts: 0,
    });
  if (signal.aborted) throw lost();
  let onAbort = (): void => undefined;
  const loss = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(lost());
    signal.addEventListener("abort", onAbort);
  });
  try {
    return await Promise.race([run(), loss]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
