// For code written for the library `redlock`, versions 4 and 5: its class, settings and errors, over
// a locker of this package. What differs is told in docs/migrating.md. A lease taken here and one of
// the library itself do not exclude each other: their keys differ.
import { EventEmitter } from "node:events";
import { type Ballot, createLocker, type Lease, LockError, type LockerOptions, type NodeSource, type Resources } from "./index.js";
import { anyNumber, knownOptions } from "./options/option.js";
import { systemClock } from "./platform/clock.js";
import { majority } from "./quorum.js";

/** The settings of `redlock`. Times are in milliseconds. */
export interface Settings {
  /** The part of a duration by which clocks may run apart; of the instance only. Default 0.01. */
  readonly driftFactor: number;
  /** With retryDelay: for how long acquire waits, retryCount × retryDelay. -1: without end. Default 10. */
  readonly retryCount: number;
  /** See retryCount. Default 200. */
  readonly retryDelay: number;
  /** Has no effect: a caller that waits is told of its turn. Default 100. */
  readonly retryJitter: number;
  /** Only checked against the duration: `using` renews before a third of it is over. Default 500. */
  readonly automaticExtensionThreshold: number;
}

const { wallMs } = systemClock();

const defaults: Settings = { driftFactor: 0.01, retryCount: 10, retryDelay: 200, retryJitter: 100, automaticExtensionThreshold: 500 };

/** What the clients answered, by the client that was given, or the name of a node that came later. */
export interface ExecutionStats {
  readonly membershipSize: number;
  readonly quorumSize: number;
  readonly votesFor: ReadonlySet<unknown>;
  readonly votesAgainst: ReadonlyMap<unknown, Error>;
}

type Attempts = readonly Promise<ExecutionStats>[];

/** A resource has another holder on this client. */
export class ResourceLockedError extends Error {
  override readonly name = "ResourceLockedError";
}

/** No quorum was found, or the lock had ended. Its `cause` is the LockError that says why. */
export class ExecutionError extends Error {
  override readonly name = "ExecutionError";

  /** The answers to the last attempt. */
  readonly attempts: Attempts;

  constructor(message: string, attempts: Attempts, cause?: unknown) {
    super(message, { cause });
    this.attempts = attempts;
  }
}

/** The signal of `using`, with the reason also as `error`. */
export type RedlockAbortSignal = AbortSignal & { readonly error?: Error };

/** A lock that was acquired. */
export class Lock {
  /** When it ends unless it is extended, by this process' clock; 0 once it was released. */
  expiration: number;
  readonly resources: readonly string[];
  /** The fencing token: send it with every write. The library has none. */
  readonly token: number;
  /** Differs from that of every other lock: the token in digits. */
  readonly value: string;

  constructor(
    readonly redlock: Redlock,
    readonly lease: Lease,
    readonly attempts: Attempts,
  ) {
    this.resources = lease.resources;
    this.token = lease.token;
    this.value = String(lease.token);
    this.expiration = wallMs() + lease.remainingMs();
  }

  release(): Promise<{ readonly attempts: Attempts }> {
    return this.redlock.release(this);
  }

  unlock(): Promise<unknown> {
    return this.release();
  }

  /** Moves the expiration. */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}

type Routine<Result> = (signal: RedlockAbortSignal, lock: Lock) => Result | PromiseLike<Result>;
type Rest<Result> = [Routine<Result>] | [Partial<Settings> | undefined, Routine<Result>];

/**
 * @example
 * const redlock = new Redlock([redisA, redisB, redisC], { retryCount: 50 });
 * const lock = await redlock.acquire(["orders/42"], 5_000);
 * try {
 *   await store.write("orders/42", document, { token: lock.token });
 * } finally {
 *   await lock.release();
 * }
 */
export default class Redlock extends EventEmitter {
  readonly clients: ReadonlySet<NodeSource>;
  readonly settings: Settings;
  readonly #locker;

  /** The third argument: what else createLocker takes; longer locks than a minute need its maxTtlMs. */
  constructor(clients: Iterable<NodeSource>, settings?: Partial<Settings>, options: Omit<LockerOptions, "nodes" | "driftFactor"> = {}) {
    super();
    // As in redlock, nobody needs to listen: without a listener, Node would throw.
    this.on("error", () => {});
    this.clients = new Set(clients);
    this.settings = readSettings(settings, defaults);
    this.#locker = createLocker({ ...options, nodes: [...this.clients], driftFactor: this.settings.driftFactor });
  }

  /** Releases what is locked here, and quits the clients that were given as instances. */
  async quit(): Promise<void> {
    await this.#locker.close();
    await Promise.all([...this.clients].map((client) => (client as { quit?: () => Promise<unknown> }).quit?.()));
  }

  async acquire(resources: Resources, duration: number, settings?: Partial<Settings>): Promise<Lock> {
    const options = leaseOptions(duration, readSettings(settings, this.settings));
    const lease = await this.#locker.acquire(resources, options).catch((error) => this.#fail(error));
    return new Lock(this, lease, this.#attempts(lease.ballots));
  }

  /** Rejects with ExecutionError also where the lock had ended before. */
  async release(lock: Lock): Promise<{ readonly attempts: Attempts }> {
    const wasHeld = lock.lease.held;
    lock.expiration = 0;
    const { outcome, ballots } = await lock.lease.release();
    const attempts = this.#attempts(ballots);
    if (!wasHeld) throw new ExecutionError("The lock had ended before it was released.", attempts, lock.lease.signal.reason);
    if (outcome === "free") return { attempts };
    throw new ExecutionError("Too few clients could be told of the release: there the lock ends by its time.", attempts);
  }

  async extend(lock: Lock, duration: number): Promise<Lock> {
    const { ttlMs } = leaseOptions(duration, this.settings);
    const { outcome, ballots } = await lock.lease.extend(ttlMs).catch((error) => this.#fail(error));
    const attempts = this.#attempts(ballots);
    if (outcome === "unknown") throw new ExecutionError("Too few clients answered: the lock ends when it would have.", attempts);
    lock.expiration = wallMs() + lock.lease.remainingMs();
    return lock;
  }

  /** `using(resources, duration, routine)`, or settings before the routine. */
  async using<Result>(resources: Resources, duration: number, ...rest: Rest<Result>): Promise<Result> {
    const [given, routine] = rest.length === 1 ? [undefined, rest[0]] : rest;
    if (typeof routine !== "function") throw new TypeError("using needs a routine to run");
    const settings = readSettings(given, this.settings);
    const options = leaseOptions(duration, settings);
    if (settings.automaticExtensionThreshold > duration - 100)
      throw new RangeError("A lock's duration must be at least 100 ms longer than automaticExtensionThreshold.");
    const run = (lease: Lease) => {
      const signal = Object.defineProperty(lease.signal, "error", { get: () => lease.signal.reason });
      return routine(signal, new Lock(this, lease, this.#attempts(lease.ballots)));
    };
    return this.#locker.using(resources, options, run).catch((error) => this.#fail(error));
  }

  #fail(error: unknown): never {
    throw error instanceof LockError ? new ExecutionError(error.message, this.#attempts(error.ballots), error) : error;
  }

  /** The votes of one attempt. As redlock does, every vote against it is an event as well. */
  #attempts(ballots: readonly Ballot[]): Attempts {
    const votesFor = new Set<unknown>();
    const votesAgainst = new Map<unknown, Error>();
    const clients = [...this.clients];
    for (const ballot of ballots) {
      const client = clients[Number(ballot.node.slice(1)) - 1] ?? ballot.node;
      const error = objection(ballot);
      if (error === undefined) votesFor.add(client);
      else votesAgainst.set(client, error);
    }
    for (const error of votesAgainst.values()) this.emit("error", error);
    return [Promise.resolve({ membershipSize: clients.length, quorumSize: majority(clients.length), votesFor, votesAgainst })];
  }
}

function objection(ballot: Ballot): Error | undefined {
  if (ballot.kind === "held")
    return new ResourceLockedError(`${ballot.resource} is held by ${ballot.holder} for ${ballot.remainingMs} ms more (${ballot.node})`);
  if (ballot.kind === "unreachable") return new Error(`${ballot.node} could not be asked: ${ballot.cause}`);
  const isFor = ballot.kind === "granted" || ballot.kind === "sealed" || ballot.kind === "extended" || ballot.kind === "released";
  return isFor ? undefined : new Error(`${ballot.node}: ${ballot.kind}`);
}

function leaseOptions(duration: number, { retryCount, retryDelay }: Settings): { readonly ttlMs: number; readonly waitMs: number } {
  if (!Number.isInteger(duration)) throw new RangeError("Duration must be an integer value in milliseconds.");
  return { ttlMs: duration, waitMs: retryCount === -1 ? Number.POSITIVE_INFINITY : Math.round(retryCount * retryDelay) };
}

function readSettings(given: Partial<Settings> | undefined, fallback: Settings): Settings {
  const settings: Settings = { ...fallback, ...(knownOptions("Redlock", given, Object.keys(defaults)) as Partial<Settings>) };
  for (const [name, value] of Object.entries(settings))
    anyNumber(name, value, { min: name === "retryCount" ? -1 : 0, max: Number.POSITIVE_INFINITY });
  return settings;
}
