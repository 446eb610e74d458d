// The options of createLocker, read once: defaults filled in, everything checked before any I/O,
// frozen. Then what single calls ask for, which is read and checked before any I/O as well.
import { hostname } from "node:os";
import type { ListHeldOptions, MemberChange, ReconfigureOptions } from "../protocol/fleet.js";
import type { AcquireOptions, CampaignOptions } from "../protocol/locker.js";
import type { NodeSource, ServerSource } from "../protocol/node.js";
import { leastTtlMs, majority, minValidityMs, validityMs } from "../quorum.js";
import { readSource, readSources } from "./node-source.js";
import { anyNumber, knownOptions, shown, wellFormedText, wholeNumber } from "./option.js";

/** How often and how fast a waiting caller asks again. */
export interface RetryOptions {
  /**
   * How often a call of acquire asks the nodes at most. Between two attempts it waits in the queue
   * for its turn, as long as that takes: the bound of its time is waitMs. Default: no limit.
   */
  readonly tries?: number;
  /**
   * The back-off after a split vote or a failed round begins at random below this, in milliseconds,
   * and doubles. Default 4.
   */
  readonly minDelayMs?: number;
  /**
   * The back-off ends here, in milliseconds; also how long a waiter sleeps at most without a
   * notice. Default 500.
   */
  readonly maxDelayMs?: number;
}

/**
 * Options of createLocker: the four that everybody sets. Times are in milliseconds.
 *
 * @example
 * { nodes: ["redis://a:6379", "redis://b:6379", "redis://c:6379"], namespace: "shop", label: "worker-7", ttlMs: 5_000 }
 */
export interface LockerOptions extends LockerTuning {
  /**
   * The N independent Redis masters: redis:// or rediss:// URLs, ioredis options, or ioredis
   * instances, which are read for their options. All lockers of a namespace name the same N.
   */
  readonly nodes: readonly NodeSource[];
  /**
   * Keeps locks of different systems apart on the same nodes: 1–128 of A–Z a–z 0–9 . _ : / @ -.
   * Default "palisade".
   */
  readonly namespace?: string;
  /**
   * The name of this locker for people who look at a held lock. Default: host name and process id.
   */
  readonly label?: string;
  /**
   * How long a lease lasts unless it is renewed. Default 10 000, or the longest lease of the fleet
   * where that is less.
   */
  readonly ttlMs?: number;
}

/** The other options of createLocker, whose defaults serve most fleets. Times are in milliseconds. */
export interface LockerTuning {
  /** How long acquire waits unless it is told otherwise. Default 10 000. */
  readonly waitMs?: number;
  /** How often and how fast a waiting caller asks again. */
  readonly retry?: RetryOptions;
  /**
   * The longest lease of the whole fleet, stored with it; also how long a node that lost its memory
   * must wait. Default: what the fleet has stored; 60 000 for a new fleet.
   */
  readonly maxTtlMs?: number;
  /**
   * A node that has not answered by then counts as unreachable for that question. Default: a
   * quarter of ttlMs, at most 250.
   */
  readonly nodeTimeoutMs?: number;
  /** How long to wait for a connection to a node. Default 2 000. */
  readonly connectTimeoutMs?: number;
  /** The part of a ttl by which the clocks of client and nodes may run apart. Default 0.01. */
  readonly driftFactor?: number;
  /** How many nodes must agree: at least the majority, at most all. Default: the majority. */
  readonly quorum?: number;
  /**
   * How long a node remembers a resource's own counter after its last use. Default 86 400 000 (a
   * day). At least maxTtlMs.
   */
  readonly retentionMs?: number;
}

export interface Policy {
  readonly nodes: readonly ServerSource[];
  readonly size: number;
  readonly quorum: number;
  readonly namespace: string;
  readonly label: string;
  readonly ttlMs: number;
  /** Without, it follows the longest lease of the fleet. */
  readonly hasOwnTtl: boolean;
  /** undefined: what the fleet has stored. */
  readonly maxTtlMs: number | undefined;
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly driftFactor: number;
  readonly waitMs: number;
  readonly retry: Required<RetryOptions>;
  readonly retentionMs: number;
}

const MAX_NODES = 31;
const DAY_MS = 86_400_000;
/** The longest timer there is: 2^31 − 1 ms. */
const MAX_TIMER_MS = 2_147_483_647;
const NAMESPACE = /^[A-Za-z0-9._:/@-]{1,128}$/;
const MAX_LABEL_BYTES = 256;

/** Of createLocker. */
export const optionNames: readonly string[] =
  "nodes namespace ttlMs maxTtlMs nodeTimeoutMs connectTimeoutMs driftFactor label quorum waitMs retry retentionMs".split(" ");

/** Of the option `retry`. */
export const retryOptionNames: readonly string[] = ["tries", "minDelayMs", "maxDelayMs"];

/** The policy, or TypeError or RangeError. */
export function readPolicy(options: LockerOptions): Policy {
  const given = knownOptions<LockerOptions>("createLocker", options, optionNames);
  const nodes = readNodes(given.nodes);
  const size = nodes.length;
  const maxTtlMs = given.maxTtlMs === undefined ? undefined : wholeNumber("maxTtlMs", given.maxTtlMs, { min: 1, max: DAY_MS });
  const ttlMs = wholeNumber("ttlMs", given.ttlMs, {
    min: 1,
    max: DAY_MS,
    fallback: Math.min(10_000, maxTtlMs ?? 10_000),
  });
  const policy: Policy = Object.freeze({
    nodes,
    size,
    quorum: readQuorum(given.quorum, size),
    namespace: readNamespace(given.namespace),
    label: readLabel(given.label),
    ttlMs,
    hasOwnTtl: given.ttlMs !== undefined,
    maxTtlMs,
    // No longer than the lease: a later answer would be a vote for a lease that has ended.
    nodeTimeoutMs: wholeNumber("nodeTimeoutMs", given.nodeTimeoutMs, {
      min: 1,
      max: ttlMs,
      fallback: Math.max(1, Math.min(250, Math.floor(ttlMs / 4))),
    }),
    connectTimeoutMs: wholeNumber("connectTimeoutMs", given.connectTimeoutMs, { min: 1, max: MAX_TIMER_MS, fallback: 2_000 }),
    driftFactor: anyNumber("driftFactor", given.driftFactor, { min: 0, max: 0.5, fallback: 0.01 }),
    waitMs: readWaitMs(given.waitMs, 10_000),
    retry: readRetry(given.retry),
    retentionMs: wholeNumber("retentionMs", given.retentionMs, {
      min: maxTtlMs ?? ttlMs,
      max: 365 * DAY_MS,
      fallback: DAY_MS,
    }),
  });
  checkTtl(policy, ttlMs);
  return policy;
}

/** A ttl that the policy allows and that leaves something after the allowance for drift. */
export function checkTtl(policy: Policy, ttlMs: number): number {
  wholeNumber("ttlMs", ttlMs, { min: 1, max: DAY_MS });
  const { maxTtlMs = DAY_MS, driftFactor } = policy;
  if (ttlMs > maxTtlMs) throw new RangeError(`ttlMs must be at most maxTtlMs, which is ${maxTtlMs}, not ${ttlMs}`);
  const leftMs = validityMs(ttlMs, driftFactor);
  const neededMs = minValidityMs(ttlMs);
  if (leftMs >= neededMs) return ttlMs;
  throw new RangeError(
    `ttlMs ${ttlMs} leaves ${leftMs.toFixed(2)} ms after the allowance for drift, and a tenth of it is needed: at least ${leastTtlMs(driftFactor)} ms`,
  );
}

/** A waiting time; Infinity is one. */
export function readWaitMs(value: unknown, fallback: number): number {
  return wholeNumber("waitMs", value, { min: 0, max: Number.POSITIVE_INFINITY, fallback });
}

function readNodes(nodes: unknown): readonly ServerSource[] {
  // A string may be a URL with a password in it.
  if (!Array.isArray(nodes))
    throw new TypeError(
      `nodes must be an array of Redis URLs, ioredis options or ioredis instances, not ${typeof nodes === "string" ? "a string" : shown(nodes)}`,
    );
  if (nodes.length === 0 || nodes.length > MAX_NODES)
    throw new RangeError(`nodes must name 1 to ${MAX_NODES} Redis masters, not ${nodes.length}`);
  return readSources(nodes);
}

function readQuorum(value: unknown, size: number): number {
  const least = majority(size);
  const quorum = wholeNumber("quorum", value, { min: 0, max: Number.POSITIVE_INFINITY, fallback: least });
  if (quorum >= least && quorum <= size) return quorum;
  const why = quorum < least ? "two smaller quorums need not share a node" : "there are no more nodes";
  throw new RangeError(`quorum must be from ${least} (the majority of ${size} nodes) to ${size}, not ${quorum}: ${why}`);
}

function readNamespace(value: unknown): string {
  if (value === undefined) return "palisade";
  if (typeof value !== "string") throw new TypeError(`namespace must be a string, not ${shown(value)}`);
  if (NAMESPACE.test(value)) return value;
  throw new RangeError(`namespace must be 1 to 128 of A–Z a–z 0–9 . _ : / @ -, not ${JSON.stringify(value)}`);
}

function readLabel(value: unknown): string {
  if (value !== undefined) return wellFormedText("label", value, MAX_LABEL_BYTES);
  return usualLabel();
}

/** Of a locker that was given none: no other process has it. */
export function usualLabel(): string {
  return `${hostname()}:${process.pid}`;
}

function readRetry(value: unknown): Required<RetryOptions> {
  const given = knownOptions<RetryOptions>("retry", value, retryOptionNames);
  const minDelayMs = wholeNumber("retry.minDelayMs", given.minDelayMs, { min: 1, max: 60_000, fallback: 4 });
  return Object.freeze({
    tries: wholeNumber("retry.tries", given.tries, {
      min: 1,
      max: Number.POSITIVE_INFINITY,
      fallback: Number.POSITIVE_INFINITY,
    }),
    minDelayMs,
    maxDelayMs: wholeNumber("retry.maxDelayMs", given.maxDelayMs, {
      min: minDelayMs,
      max: 60_000,
      fallback: Math.max(500, minDelayMs),
    }),
  });
}

/**
 * The policy for as many nodes as are members now. A stricter quorum than the majority stays as
 * strict as their number allows.
 */
export function policyFor(size: number, configured: Policy): Policy {
  const { quorum } = configured;
  if (size === configured.size) return configured;
  const isMajority = quorum === majority(configured.size);
  return Object.freeze({ ...configured, size, quorum: isMajority ? majority(size) : Math.max(majority(size), Math.min(quorum, size)) });
}

/** What one call asks for: the resources and options of acquire, tryAcquire, using and campaign. */
export interface LeaseRequest {
  readonly resources: readonly string[];
  readonly label: string;
  readonly ttlMs: number;
  /** Given with the call, or to createLocker: refused where the fleet allows less. */
  readonly hasOwnTtl: boolean;
  readonly renew: boolean;
  readonly maxHoldMs: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

const MAX_RESOURCE_BYTES = 512;
const MAX_RESOURCES = 128;

const tryNames = ["renew", "maxHoldMs", "ttlMs"];
/** Of acquire; the other calls have some of these. */
export const acquireNames: readonly string[] = [...tryNames, "waitMs", "signal"];
const campaignNames = ["ttlMs", "maxHoldMs", "signal", "label"];
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
  const given = knownOptions<AcquireOptions & CampaignOptions>(call, input.options, namesOf[call]);
  const { renew = false } = given;
  if (typeof renew !== "boolean") throw new TypeError(`renew must be a boolean, not ${shown(renew)}`);
  const maxHoldMs = wholeNumber("maxHoldMs", given.maxHoldMs, {
    min: 1,
    max: Number.POSITIVE_INFINITY,
    fallback: Number.POSITIVE_INFINITY,
  });
  const ttlMs = Math.min(given.ttlMs === undefined ? policy.ttlMs : checkTtl(policy, given.ttlMs as number), maxHoldMs);
  return {
    resources: readResources(input.resources),
    label: given.label === undefined ? policy.label : readLabel(given.label),
    ttlMs: checkTtl(policy, ttlMs),
    hasOwnTtl: policy.hasOwnTtl || given.ttlMs !== undefined,
    renew: renew || call === "using" || call === "campaign",
    maxHoldMs,
    waitMs: call === "campaign" ? Number.POSITIVE_INFINITY : readWaitMs(given.waitMs, policy.waitMs),
    signal: readSignal(given.signal),
  };
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

const MAX_NAME_BYTES = 512;

const kinds = "add, remove, replace with by, or maxTtlMs";

/** TypeError or RangeError if it is not one change. */
export function readMemberChange(change: unknown): MemberChange<ServerSource> {
  const given = knownOptions<{ add: 0; remove: 0; replace: 0; by: 0; maxTtlMs: 0 }>("reconfigure", change, [
    "add",
    "remove",
    "replace",
    "by",
    "maxTtlMs",
  ]);
  const names = Object.keys(given).sort().join(" ");
  if (names === "add") return { add: readSource(given.add, "add") };
  if (names === "remove") return { remove: wellFormedText("remove", given.remove, MAX_NAME_BYTES) };
  if (names === "by replace") return { replace: wellFormedText("replace", given.replace, MAX_NAME_BYTES), by: readSource(given.by, "by") };
  if (names === "maxTtlMs") return { maxTtlMs: wholeNumber("maxTtlMs", given.maxTtlMs, { min: 1, max: DAY_MS }) };
  throw new TypeError(`reconfigure makes one change at a time: ${kinds}, not ${names === "" ? "nothing" : names}`);
}

export function readReconfigureOptions(options: unknown): ReconfigureOptions {
  const { waitMs, onWait } = knownOptions<{ waitMs: 0; onWait: 0 }>("reconfigure", options, ["waitMs", "onWait"]);
  if (onWait !== undefined && typeof onWait !== "function") throw new TypeError(`onWait must be a function, not ${shown(onWait)}`);
  const limits = { onWait: onWait as ReconfigureOptions["onWait"] };
  return waitMs === undefined ? limits : { ...limits, waitMs: wholeNumber("waitMs", waitMs, { min: 0, max: Number.POSITIVE_INFINITY }) };
}

export function readNames(names: unknown): readonly string[] {
  if (!Array.isArray(names) || names.length === 0)
    throw new TypeError(`foundWithout needs an array with the addresses of nodes, not ${shown(names)}`);
  return names.map((name, index) => wellFormedText(`nodes[${index}]`, name, MAX_NAME_BYTES));
}
