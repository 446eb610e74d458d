// The options of createLocker, read once: defaults filled in, everything checked before any I/O,
// frozen.
import { hostname } from "node:os";
import { majority } from "../quorum/tally.js";
import { driftMs, minValidityMs, neededTtlMs } from "../quorum/validity-after-drift.js";
import { checkSource, type NodeSource } from "./node-source.js";
import { anyNumber, knownOptions, shown, wellFormedText, wholeNumber } from "./option.js";

/** How often and how fast a waiting caller asks again. */
export interface RetryOptions {
  /** At most so many attempts per call of acquire. Default: no limit, waitMs is the bound. */
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

/** Options of createLocker. Times are in milliseconds. */
export interface LockerOptions {
  /**
   * The N independent Redis masters: redis:// or rediss:// URLs, ioredis options, or ioredis
   * instances (which are duplicated). All lockers of a namespace name the same N.
   */
  readonly nodes?: readonly NodeSource[];
  /**
   * In place of nodes: several fleets, each by its name with its nodes. A resource belongs to one
   * of them, by its name or by what is in the first {} of it; several resources of one lease must
   * have the same {}.
   */
  readonly fleets?: Readonly<Record<string, readonly NodeSource[]>>;
  /**
   * Keeps locks of different systems apart on the same nodes: 1–128 of A–Z a–z 0–9 . _ : / @ -.
   * Default "palisade".
   */
  readonly namespace?: string;
  /**
   * How long a lease lasts unless it is renewed. Default 10 000, or maxTtlMs where that is given
   * and less.
   */
  readonly ttlMs?: number;
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
  /**
   * A lease with less than this left when it is granted counts as too slow. Default: a tenth of the
   * lease's ttl.
   */
  readonly minValidityMs?: number;
  /**
   * The name of this locker for people who look at a held lock. Default: host name and process id.
   */
  readonly label?: string;
  /** How many nodes must agree: at least the majority, at most all. Default: the majority. */
  readonly quorum?: number;
  /** How long acquire waits unless it is told otherwise. Default 10 000. */
  readonly waitMs?: number;
  /** How often and how fast a waiting caller asks again. */
  readonly retry?: RetryOptions;
  /**
   * How many calls of acquire, using and tryAcquire may be in flight at the same time; one more is
   * refused at once, with `LOCK_TOO_SLOW`. Default 100 000.
   */
  readonly maxWaiters?: number;
  /**
   * How long a node remembers a resource's own counter after its last use. Default 86 400 000 (a
   * day). At least maxTtlMs.
   */
  readonly retentionMs?: number;
}

export interface Policy {
  readonly size: number;
  readonly quorum: number;
  readonly namespace: string;
  readonly label: string;
  readonly ttlMs: number;
  /** undefined: what the fleet has stored. */
  readonly maxTtlMs: number | undefined;
  readonly nodeTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly driftFactor: number;
  /** undefined: a tenth of each lease's ttl. */
  readonly minValidityMs: number | undefined;
  readonly waitMs: number;
  readonly retry: Required<RetryOptions>;
  readonly maxWaiters: number;
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
  "nodes fleets namespace ttlMs maxTtlMs nodeTimeoutMs connectTimeoutMs driftFactor minValidityMs label quorum waitMs retry maxWaiters retentionMs".split(
    " ",
  );

/** Of the option `retry`. */
export const retryOptionNames: readonly string[] = ["tries", "minDelayMs", "maxDelayMs"];

/** The policy, or TypeError or RangeError. */
export function readPolicy(options: LockerOptions): Policy {
  const given = knownOptions<LockerOptions>("createLocker", options, optionNames);
  const size = readSize(given.nodes);
  const maxTtlMs = given.maxTtlMs === undefined ? undefined : wholeNumber("maxTtlMs", given.maxTtlMs, { min: 1, max: DAY_MS });
  const ttlMs = wholeNumber("ttlMs", given.ttlMs, {
    min: 1,
    max: DAY_MS,
    fallback: Math.min(10_000, maxTtlMs ?? 10_000),
  });
  const policy: Policy = Object.freeze({
    size,
    quorum: readQuorum(given.quorum, size),
    namespace: readNamespace(given.namespace),
    label: readLabel(given.label),
    ttlMs,
    maxTtlMs,
    ...readTimeouts(given, ttlMs),
    driftFactor: anyNumber("driftFactor", given.driftFactor, { min: 0, max: 0.5, fallback: 0.01 }),
    minValidityMs:
      given.minValidityMs === undefined ? undefined : wholeNumber("minValidityMs", given.minValidityMs, { min: 1, max: DAY_MS }),
    waitMs: readWaitMs(given.waitMs, 10_000),
    retry: readRetry(given.retry),
    maxWaiters: wholeNumber("maxWaiters", given.maxWaiters, { min: 1, max: 10_000_000, fallback: 100_000 }),
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
  const leftMs = ttlMs - driftMs(ttlMs, driftFactor);
  const neededMs = minValidityMs(policy.minValidityMs, ttlMs);
  if (leftMs >= neededMs && leftMs > 0) return ttlMs;
  const least = policy.minValidityMs === undefined ? driftMs(0, driftFactor) / (0.9 - driftFactor) : neededTtlMs(neededMs, driftFactor);
  throw new RangeError(
    `ttlMs ${ttlMs} leaves ${leftMs.toFixed(2)} ms after the allowance for drift, and ${neededMs} ms (minValidityMs) are needed: at least ${Math.ceil(least)} ms`,
  );
}

/** A waiting time; Infinity is one. */
export function readWaitMs(value: unknown, fallback: number): number {
  return wholeNumber("waitMs", value, { min: 0, max: Number.POSITIVE_INFINITY, fallback });
}

function readSize(nodes: unknown): number {
  // A string may be a URL with a password in it.
  if (!Array.isArray(nodes))
    throw new TypeError(
      `nodes must be an array of Redis URLs, ioredis options or ioredis instances, not ${typeof nodes === "string" ? "a string" : shown(nodes)}`,
    );
  if (nodes.length === 0 || nodes.length > MAX_NODES)
    throw new RangeError(`nodes must name 1 to ${MAX_NODES} Redis masters, not ${nodes.length}`);
  // Not forEach, which skips holes.
  for (let i = 0; i < nodes.length; i++) checkSource(nodes[i], `nodes[${i}]`);
  return nodes.length;
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

function readTimeouts(
  given: Partial<Record<keyof LockerOptions, unknown>>,
  ttlMs: number,
): Pick<Policy, "nodeTimeoutMs" | "connectTimeoutMs"> {
  const fallback = Math.max(1, Math.min(250, Math.floor(ttlMs / 4)));
  return {
    // No longer than the lease: a later answer would be a vote for a lease that has ended.
    nodeTimeoutMs: wholeNumber("nodeTimeoutMs", given.nodeTimeoutMs, { min: 1, max: ttlMs, fallback }),
    connectTimeoutMs: wholeNumber("connectTimeoutMs", given.connectTimeoutMs, {
      min: 1,
      max: MAX_TIMER_MS,
      fallback: 2_000,
    }),
  };
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
