// What an operation of the soak may use: the lock, the gateway, chance, and the clock that times it. It counts what is under way.

import { createGatewayClient, type GatewayClient } from "@palisade/gateway/client";
import { createLocker, type Lease, type Locker } from "@palisade/lock";
import { type Chance, chanceOf } from "../../harness/chance.js";
import { type ClientOrders, type Timing, timings } from "./client-words.js";
import { Latency } from "./latency.js";

/** Short enough that leases end and are renewed all the time. */
export const TTL_MS = 2_000;
export const MAX_TTL_MS = 5_000;
const NODE_TIMEOUT_MS = 150;
/** Counters of resources that are not used any more are forgotten after so long, so that a soak sees the level at which they stay. */
const RETENTION_MS = 60_000;
const HOT = 2;
const SHARED_DOCUMENTS = 400;

export class Tools {
  readonly locker: Locker;
  readonly gateway: GatewayClient;
  readonly chance: Chance;
  /** One that lives as long as the process, as a service has for its shutdown: what is left on it by a call is there for ever. */
  readonly shutdown = new AbortController();
  readonly latencies = Object.fromEntries(timings.map((name) => [name, new Latency()])) as Record<Timing, Latency>;
  readonly #orders: ClientOrders;
  #waiting = 0;
  #made = 0;

  constructor(orders: ClientOrders) {
    this.#orders = orders;
    this.chance = chanceOf(orders.seed, `client ${orders.client}`);
    this.locker = this.anotherLocker();
    this.gateway = createGatewayClient({ url: orders.gatewayUrl, timeoutMs: 4_000 });
  }

  get waiting(): number {
    return this.#waiting;
  }

  anotherLocker(): Locker {
    const { redisUrls, namespace, client } = this.#orders;
    return createLocker({
      nodes: redisUrls,
      namespace,
      ttlMs: TTL_MS,
      maxTtlMs: MAX_TTL_MS,
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      retentionMs: RETENTION_MS,
      waitMs: 3_000,
      label: `client ${client}`,
    });
  }

  /** What everybody wants. */
  hot(): string {
    return `hot/${this.chance.between(1, HOT)}`;
  }

  /** A name that nobody has used before. */
  fresh(): string {
    this.#made++;
    return `of/${this.#orders.client}/${this.#made}`;
  }

  /** A document that all clients write from time to time. */
  document(): string {
    return `document/${this.chance.between(1, SHARED_DOCUMENTS)}`;
  }

  async acquire(resources: string | readonly string[], options: Parameters<Locker["acquire"]>[1] = {}): Promise<Lease> {
    return await this.under(this.locker.acquire(resources, options));
  }

  /** Counts it as waiting until it is settled. */
  async under<T>(acquiring: Promise<T>): Promise<T> {
    this.#waiting++;
    try {
      return await acquiring;
    } finally {
      this.#waiting--;
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
