// What one call asks for, read and checked before any I/O: resources and options of acquire,
// tryAcquire, using and adopt.
import type { ListHeldOptions } from "../protocol/inspection.js";
import type { AcquireOptions, KeepOptions } from "../protocol/locker.js";
import { knownOptions, shown, wellFormedText, wholeNumber } from "./option.js";
import { checkTtl, type Policy, readWaitMs } from "./policy.js";

export interface LeaseRequest {
  readonly resources: readonly string[];
  readonly ttlMs: number;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

const MAX_RESOURCE_BYTES = 512;
const MAX_RESOURCES = 128;

const keepNames = ["renew", "maxHoldMs"];
const tryNames = [...keepNames, "ttlMs"];
/** Of acquire; the other calls have some of these. */
export const acquireNames: readonly string[] = [...tryNames, "waitMs", "signal"];
const campaignNames = ["ttlMs", "maxHoldMs", "signal"];
const usingNames = acquireNames.filter((name) => name !== "renew");

export type Call = "acquire" | "tryAcquire" | "using" | "campaign";

const namesOf: Readonly<Record<Call, readonly string[]>> = {
  acquire: acquireNames,
  tryAcquire: tryNames,
  using: usingNames,
  campaign: campaignNames,
};

export function readLeaseRequest(
  call: Call,
  policy: Policy,
  input: { readonly resources: unknown; readonly options: unknown },
): LeaseRequest {
  const resources = readResources(input.resources);
  if (input.options === undefined) return ordinary(call, policy, resources);
  const given = knownOptions<AcquireOptions>(call, input.options, namesOf[call]);
  const keep = readKeepOptions(given);
  const ttlMs = Math.min(given.ttlMs === undefined ? policy.ttlMs : checkTtl(policy, given.ttlMs as number), keep.maxHoldMs);
  return {
    resources,
    ttlMs: checkTtl(policy, ttlMs),
    renew: isRenewed(call) || keep.renew,
    maxHoldMs: keep.maxHoldMs,
    waitMs: call === "campaign" ? Number.POSITIVE_INFINITY : readWaitMs(given.waitMs, policy.waitMs),
    signal: readSignal(given.signal),
  };
}

function readKeepOptions(given: { readonly renew?: unknown; readonly maxHoldMs?: unknown }): {
  renew: boolean;
  maxHoldMs: number;
} {
  if (given.renew !== undefined && typeof given.renew !== "boolean")
    throw new TypeError(`renew must be a boolean, not ${shown(given.renew)}`);
  const max = Number.POSITIVE_INFINITY;
  return {
    renew: given.renew ?? false,
    maxHoldMs: wholeNumber("maxHoldMs", given.maxHoldMs, { min: 1, max, fallback: max }),
  };
}

function isRenewed(call: Call): boolean {
  return call === "using" || call === "campaign";
}

/** Adopt has only these two. */
export function readAdoptOptions(options: unknown): { renew: boolean; maxHoldMs: number } {
  return readKeepOptions(knownOptions<KeepOptions>("adopt", options, keepNames));
}

const MAX_LISTED = 100_000;

export function readListHeldOptions(options: unknown): Required<ListHeldOptions> {
  const given = knownOptions<ListHeldOptions>("listHeld", options, ["prefix", "limit"]);
  const { prefix = "" } = given;
  return {
    prefix: prefix === "" ? "" : wellFormedText("prefix", prefix, MAX_RESOURCE_BYTES),
    limit: wholeNumber("limit", given.limit, { min: 1, max: MAX_LISTED, fallback: MAX_LISTED }),
  };
}

/** One resource or a list of different ones, frozen. */
export function readResources(value: unknown): readonly string[] {
  if (!Array.isArray(value)) return Object.freeze([readResource(value)]);
  if (value.length === 0 || value.length > MAX_RESOURCES)
    throw new RangeError(`a lease is of 1 to ${MAX_RESOURCES} resources, not ${value.length}`);
  const resources = value.map(readResource);
  if (new Set(resources).size === resources.length) return Object.freeze(resources);
  const twice = resources.find((resource, i) => resources.indexOf(resource) !== i);
  throw new RangeError(`the resource ${JSON.stringify(twice)} is named twice in one lease`);
}

/** One resource. */
export function readResource(value: unknown): string {
  return wellFormedText("resource", value, MAX_RESOURCE_BYTES);
}

function ordinary(call: Call, policy: Policy, resources: readonly string[]): LeaseRequest {
  const { ttlMs, waitMs } = policy;
  return {
    resources,
    ttlMs,
    renew: isRenewed(call),
    maxHoldMs: Number.POSITIVE_INFINITY,
    waitMs: call === "campaign" ? Number.POSITIVE_INFINITY : waitMs,
    signal: undefined,
  };
}

function readSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined || isSignal(value)) return value;
  throw new TypeError(`signal must be an AbortSignal, not ${shown(value)}`);
}

/** One of another realm (a test environment, a vm context) is as good as one of ours. */
function isSignal(value: unknown): value is AbortSignal {
  if (typeof value !== "object" || value === null) return false;
  const { aborted, addEventListener, removeEventListener } = value as Partial<AbortSignal>;
  return typeof aborted === "boolean" && typeof addEventListener === "function" && typeof removeEventListener === "function";
}
