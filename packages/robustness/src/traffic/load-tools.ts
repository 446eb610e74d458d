// What an operation of the soak uses: the lock, the gateway, chance, and the clock that times it.
// Counts the acquires under way.
import { createGatewayClient, type GatewayClient } from "@palisade/client";
import { createLocker, type Lease, type Locker } from "@palisade/lock";
import { type Chance, chanceOf } from "./chance.js";
import { Latency } from "./latency.js";
import { type LoadOrders, type Timing, timings } from "./messages.js";

/** Short enough that leases end and are renewed all the time. */
export const loadTimes = { ttlMs: 2_000, maxTtlMs: 5_000 };
/** Short, so that a soak reaches the level at which the number of counters stays. */
const RETENTION_MS = 60_000;
const CONTENDED = 2;
const SHARED_DOCUMENTS = 400;

/** An operation; its result is the name of a refusal, if it is a string. */
export type Work = (tools: LoadTools) => Promise<unknown>;

export class LoadTools {
  readonly locker: Locker;
  readonly gateway: GatewayClient;
  readonly chance: Chance;
  /** Lives as long as the process, like a service's signal: a listener left on it leaks. */
  readonly shutdown = new AbortController();
  readonly latencies = Object.fromEntries(timings.map((name) => [name, new Latency()])) as Record<Timing, Latency>;
  waiting = 0;
  readonly #orders: LoadOrders;
  #made = 0;

  constructor(orders: LoadOrders) {
    this.#orders = orders;
    this.chance = chanceOf(orders.seed, orders.name);
    this.locker = this.anotherLocker();
    this.gateway = createGatewayClient({ url: orders.gatewayUrl, timeoutMs: 4_000, retry: { attempts: 5 } });
  }

  anotherLocker(): Locker {
    const { redisUrls: nodes, namespace, name: label } = this.#orders;
    return createLocker({ nodes, namespace, ...loadTimes, nodeTimeoutMs: 150, retentionMs: RETENTION_MS, waitMs: 3_000, label });
  }

  contended(): string {
    return `hot/${this.chance.between(1, CONTENDED)}`;
  }

  /** A name that was never used before. */
  fresh(): string {
    this.#made++;
    return `of/${this.#orders.client}/${this.#made}`;
  }

  /** A document that all clients write from time to time. */
  document(): string {
    return `document/${this.chance.between(1, SHARED_DOCUMENTS)}`;
  }

  async acquire(resources: string | readonly string[], options: Parameters<Locker["acquire"]>[1] = {}): Promise<Lease> {
    return await this.whileWaiting(this.locker.acquire(resources, options));
  }

  /** Counts it as waiting until it is settled. */
  async whileWaiting<T>(acquiring: Promise<T>): Promise<T> {
    this.waiting++;
    try {
      return await acquiring;
    } finally {
      this.waiting--;
    }
  }

  async timed<T>(name: Timing, run: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      return await run();
    } finally {
      this.latencies[name].add(performance.now() - startedAt);
    }
  }
}
