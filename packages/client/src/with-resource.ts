// The short way to be safe: acquire, seal, run, write, release. The seals come before the read, so
// that no write of an older holder can land between what the routine saw and what it stores; the
// write can be repeated when its outcome is unknown: it carries the sequence number after the last
// one that the routine used.

import { parseJson } from "./answer.js";
import type { GatewayClient } from "./gateway-client.js";
import { checkMethod, checkOptions, shown } from "./misuse.js";
import { type LeaseLike, watchNumbers } from "./request-format.js";
import type { Refusal, RefusalCode, SealResult } from "./results.js";
import { tracing } from "./spans.js";

/** A refusal that was thrown. Of a write, `outcome` says whether it may be stored. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  /** The code of the refusal. */
  readonly code: RefusalCode;
  /** `unknown`: the document may or may not be stored. */
  readonly outcome: Refusal["outcome"];
  /** The whole answer. */
  readonly refusal: Refusal;
  constructor(message: string, refusal: Refusal) {
    super(`${message}: ${refusal.code}. ${refusal.detail}`);
    this.refusal = refusal;
    this.code = refusal.code;
    this.outcome = refusal.outcome;
  }
}

/** A lease that is released by disposing of it; those of @palisade/lock fit. */
export interface HeldLease extends LeaseLike, AsyncDisposable {}

/** The part of a locker that is needed; the lockers of @palisade/lock fit. */
export interface LockerLike<Options extends object = object> {
  /** Waits for the resources and takes them. */
  acquire(resource: string | readonly string[], options?: Options): Promise<HeldLease>;
}

/** Options of withResource. */
export interface WithResourceOptions {
  /** Passed on to acquire(); the lease is renewed while the routine runs. */
  readonly acquire?: object | undefined;
  /** For one try of one request. */
  readonly timeoutMs?: number | undefined;
}

/** What the routine gets beside the document. */
export interface ResourceWork<Rev = number> {
  /** Aborts when the lease is lost: a result returned after that is not stored. */
  readonly signal: AbortSignal;
  /** The lease that the routine runs under. */
  readonly lease: LeaseLike;
  /** The stored revision; 0 when nothing was ever written. */
  readonly rev: Rev;
}

/** What withResource answers when it has stored. */
export interface ResourceResult<T, Rev = number> {
  /** What the routine returned. */
  readonly value: T;
  /** The revision that is stored now. */
  readonly rev: Rev;
  /** The token that it was stored under. */
  readonly token: number;
}

type Client = Pick<GatewayClient, "seal" | "put" | "transaction">;
type MaybePromise<T> = T | Promise<T>;
/** The documents of several resources; null where there is none. */
export type Documents<T extends readonly unknown[]> = { readonly [K in keyof T]: T[K] | null };
/** What to store for several resources; undefined leaves one as it is. */
export type Changes<T extends readonly unknown[]> = { readonly [K in keyof T]: T[K] | undefined };

interface WithResource {
  /**
   * Stores what the routine returns; stores nothing when it throws. Throws GatewayError when the
   * gateway refuses or the lease is lost, and what the locker throws when it grants no lease.
   */
  <T>(
    ...call: readonly [
      locker: LockerLike,
      client: Client,
      resource: string,
      routine: (document: T | null, work: ResourceWork) => MaybePromise<T>,
      options?: WithResourceOptions,
    ]
  ): Promise<ResourceResult<T>>;
  /** A routine that returns undefined stores nothing. */
  <T>(
    ...call: readonly [
      locker: LockerLike,
      client: Client,
      resource: string,
      routine: (document: T | null, work: ResourceWork) => MaybePromise<T | undefined>,
      options?: WithResourceOptions,
    ]
  ): Promise<ResourceResult<T | undefined>>;
  /**
   * Several resources under one lease: each is sealed and read, and what the routine returns is
   * stored in one transaction, all or nothing.
   */
  <T extends readonly unknown[]>(
    ...call: readonly [
      locker: LockerLike,
      client: Client,
      resources: { readonly [K in keyof T]: string },
      routine: (documents: Documents<T>, work: ResourceWork<readonly number[]>) => MaybePromise<Changes<T> | undefined>,
      options?: WithResourceOptions,
    ]
  ): Promise<ResourceResult<Changes<T> | undefined, readonly number[]>>;
}

type Call = readonly [LockerLike, Client, string | readonly string[], (document: never, work: never) => unknown, WithResourceOptions?];

/**
 * Acquires, seals, reads, runs the routine, stores what it returns, and releases. Throws
 * GatewayError when the gateway refuses or the lease is lost, and what the locker throws when it
 * grants no lease.
 */
export const withResource = (async (...call: Call) => {
  const [locker, client, resource, routine, options = {}] = call;
  checkMethod(locker, "acquire", "withResource needs a locker first, as createLocker({ nodes }) makes it");
  checkMethod(client, "seal", "withResource needs a client second, as createGatewayClient({ url }) makes it");
  if (typeof routine !== "function")
    throw new TypeError(`withResource needs a routine that returns the new document, not ${shown(routine)}`);
  checkOptions("withResource", options, ["acquire", "timeoutMs"]);
  const { spans } = tracing;
  if (spans === undefined) return await underLease(...call);
  return await spans.withResource(typeof resource === "string" ? [resource] : resource, () => underLease(...call));
}) as WithResource;

async function underLease(...[locker, client, resource, routine, options = {}]: Call): Promise<unknown> {
  const run = routine as (document: unknown, work: ResourceWork<unknown>) => unknown;
  const lease = await locker.acquire(resource, { renew: true, ...options.acquire });
  // Releasing never throws over an error of the routine.
  await using _release = lease;
  const numbers = watchNumbers(typeof resource === "string" ? [resource] : resource, lease.token);
  try {
    const work = { client, lease, run, numbers, timeoutMs: options.timeoutMs };
    return typeof resource === "string" ? await withOne(work, resource) : await withSeveral(work, resource);
  } finally {
    numbers.end();
  }
}

interface Work {
  readonly client: Client;
  readonly lease: LeaseLike;
  readonly run: (document: unknown, work: ResourceWork<unknown>) => unknown;
  readonly numbers: { next(resource: string): number };
  readonly timeoutMs: number | undefined;
}

async function withOne(work: Work, resource: string): Promise<ResourceResult<unknown>> {
  const { client, lease, numbers, timeoutMs } = work;
  const { token } = lease;
  const seal = await sealed(work, resource);
  const value = await untilLost(work, resource, seal.value, seal.rev);
  if (value === undefined) {
    checkUnchanged(resource, seal);
    return { value, rev: seal.rev, token };
  }
  const stored = await client.put(resource, value, { lease, seq: numbers.next(resource), timeoutMs });
  if (!stored.ok) throw new GatewayError(`${resource} was not stored with token ${token}`, stored);
  return { value, rev: stored.rev, token };
}

async function withSeveral(work: Work, resources: readonly string[]): Promise<ResourceResult<unknown, readonly number[]>> {
  const { client, lease, numbers, timeoutMs } = work;
  const { token } = lease;
  const names = resources.join(", ");
  const seals = await Promise.all(resources.map((resource) => sealed(work, resource)));
  const before = seals.map(({ rev }) => rev);
  const documents = seals.map(({ value }) => value);
  const value = await untilLost(work, names, documents, before);
  for (const [index, seal] of seals.entries())
    if (value === undefined || (Array.isArray(value) && value[index] === undefined)) checkUnchanged(resources[index] ?? "", seal);
  if (value === undefined) return { value, rev: before, token };
  if (!Array.isArray(value) || value.length !== resources.length)
    throw new TypeError(`the routine must return ${resources.length} documents, one for each of ${names}, or undefined`);
  const operations = resources.flatMap((resource, index) =>
    value[index] === undefined ? [] : [{ op: "put" as const, resource, value: value[index] as unknown, seq: numbers.next(resource) }],
  );
  if (operations.length === 0) return { value, rev: before, token };
  const stored = await client.transaction(operations, { lease, timeoutMs });
  if (!stored.ok) throw new GatewayError(`${names} were not stored with token ${token}`, stored);
  const revOf = new Map(stored.results.map(({ resource, rev }) => [resource, rev]));
  return { value, rev: resources.map((resource, index) => revOf.get(resource) ?? before[index] ?? 0), token };
}

type Seal = Extract<SealResult, { readonly ok: true }>;

async function sealed({ client, lease, timeoutMs }: Work, resource: string): Promise<Seal> {
  const answer = await client.seal(resource, { lease, timeoutMs });
  if (!answer.ok) throw new GatewayError(`${resource} could not be sealed with token ${lease.token}`, answer);
  return answer;
}

/** What a routine changes in place is not stored: only what it returns is. */
function checkUnchanged(resource: string, { value, text }: Seal): void {
  if (JSON.stringify(value) !== JSON.stringify(parseJson(text)))
    throw new TypeError(`the routine changed the document of ${resource} and returned nothing for it: return the document to store it`);
}

/**
 * Does not wait for a routine whose lease is lost; the routine reports a later error itself,
 * through the signal it was given.
 */
async function untilLost({ lease, run }: Work, ...[name, document, rev]: readonly [string, unknown, unknown]): Promise<unknown> {
  const { signal } = lease;
  const lost = (): GatewayError =>
    new GatewayError(`the lease of ${name} with token ${lease.token} was lost while the routine ran`, {
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
    const running = (async () => run(document, { signal, lease, rev }))();
    return await Promise.race([running, loss]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
