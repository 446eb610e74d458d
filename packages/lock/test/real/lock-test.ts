// `test` for this package: what the testkit offers, and lockers that are closed when the test is
// over. Also small ways to look at the nodes past the lock.
import { setTimeout as sleep } from "node:timers/promises";
import { createLocker, type Locker, type LockerOptions } from "@palisade/lock";
import type { RedisFleet } from "@palisade/testkit";
import { test as base } from "@palisade/testkit/vitest";
import { Redis } from "ioredis";

export { describe, expect } from "@palisade/testkit/vitest";
export { aborted, failure, listen } from "../listening.js";

/** Opens a locker that is closed after the test; by default it waits long for slow nodes. */
export type OpenLocker = (options: LockerOptions) => Locker;

export const test = base
  .extend("open", ({ task: _test }, { onCleanup }): OpenLocker => {
    const opened: Locker[] = [];
    onCleanup(async () => {
      await Promise.all(opened.map((locker) => locker.close()));
    });
    return (options) => {
      const { ttlMs = 10_000, maxTtlMs = ttlMs } = options;
      const locker = createLocker({
        nodeTimeoutMs: Math.min(5_000, ttlMs, maxTtlMs),
        connectTimeoutMs: 10_000,
        ...options,
      });
      opened.push(locker);
      return locker;
    };
  })
  /** Opens one on the shared fleet of five, in the test's own namespace. */
  .extend("shared", ({ redis: { urls, namespace }, open }) => (options: Partial<LockerOptions> = {}): Locker => {
    return open({ nodes: urls, namespace, ...options });
  })
  .extend("locker", ({ shared }): Locker => shared())
  /** Starts a fleet that the test may break, and opens a locker on it. */
  .extend("own", ({ fleet, open }) => async (size: number, options: Partial<LockerOptions> = {}) => {
    const running = await fleet({ nodes: size });
    return { running, nodes: running.nodes, locker: open({ nodes: running.urls, ...options }) };
  })
  /** Reads the shared nodes past the lock. */
  .extend("eye", ({ redis }, { onCleanup }): Eye => {
    const clients = redis.urls.map((url) => new Redis(url));
    onCleanup(() => {
      for (const client of clients) client.disconnect();
    });
    return new Eye(redis.namespace, clients);
  });

/** Sees what is stored on each node. */
export class Eye {
  readonly #namespace: string;
  readonly #nodes: readonly Redis[];

  constructor(namespace: string, nodes: readonly Redis[]) {
    this.#namespace = namespace;
    this.#nodes = nodes;
  }

  /** The lock key on each node, null where there is none. */
  holders(resource: string): Promise<(string | null)[]> {
    return Promise.all(this.#nodes.map((node) => node.get(`{${this.#namespace}}:lock:${resource}`)));
  }

  tokens(resource: string): Promise<(string | null)[]> {
    return Promise.all(this.#nodes.map((node) => node.get(`{${this.#namespace}}:token:${resource}`)));
  }

  /** Makes one node remember another token. */
  async store(resource: string, on: number, token: number): Promise<void> {
    await this.#nodes[on]?.set(`{${this.#namespace}}:token:${resource}`, String(token), "PX", 60_000);
  }

  async remove(resource: string, on: readonly number[]): Promise<void> {
    await Promise.all(on.map((i) => this.#nodes[i]?.del(`{${this.#namespace}}:lock:${resource}`)));
  }

  /** Resolves when no node has a lock on the resource. */
  gone(resource: string): Promise<void> {
    return until(async () => (await this.holders(resource)).every((holder) => holder === null), `no node has ${resource}`);
  }
}

/** The lock keys of a private fleet, read past its proxies. */
export function fleetHolders(fleet: RedisFleet, resource: string, namespace = "palisade"): Promise<unknown[]> {
  return Promise.all(fleet.nodes.map((node) => node.cli("GET", `{${namespace}}:lock:${resource}`)));
}

/** Waits until it is so; fails after five seconds, or as long as it is worth. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string, forMs = 5_000): Promise<void> {
  const endsAt = performance.now() + forMs;
  while (!(await isSo())) {
    if (performance.now() > endsAt) throw new Error(`it never came about that ${what}`);
    await sleep(2);
  }
}

/** How long it took, in milliseconds, and what came of it. */
export async function timed<T>(run: () => Promise<T>): Promise<{ readonly tookMs: number; readonly result: T }> {
  const startedAt = performance.now();
  const result = await run();
  return { tookMs: performance.now() - startedAt, result };
}
