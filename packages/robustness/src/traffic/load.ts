// Traffic of the soak: so many operations per second, drawn by chance, from several actors at once:
// every way a lease begins and ends, writes and reads through the gateway, and every refusal that a
// healthy client meets. Refusals are counted by their code; any other error ends the process.
import { once } from "node:events";
import { openSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createGatewayClient, GatewayError, withResource } from "@palisade/client";
import { createLocker, type Lease, LockError, type Locker } from "@palisade/lock";
import { type Chance, chanceOf } from "../chance.js";
import { median } from "../checkers/growth.js";
import type { Leak, LoadOrders, Process, Reading, Timing, Traffic } from "./messages.js";
import { readSelf, startProbe } from "./probe.js";
import { firstContact } from "./recorded-lock.js";

/** Short enough that leases end and are renewed all the time. */
const times = { ttlMs: 2_000, maxTtlMs: 5_000 };
/** Short, so that a soak reaches the level at which the number of counters stays. */
const RETENTION_MS = 60_000;
const CONTENDED = 2;
const SHARED_DOCUMENTS = 400;
const ACTORS = 12;
/** The longest operation is a write, tried five times against a gateway that is silent. */
const FINISH_MS = 40_000;

/** What an operation uses. Counts the acquires under way. */
class Tools {
  readonly locker: Locker;
  readonly gateway: ReturnType<typeof createGatewayClient>;
  readonly chance: Chance;
  /** Lives as long as the process, like a service's signal: a listener left on it leaks. */
  readonly shutdown = new AbortController();
  waiting = 0;
  took: Partial<Record<Timing, number[]>> = {};
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
    return createLocker({ nodes, namespace, ...times, nodeTimeoutMs: 150, retentionMs: RETENTION_MS, waitMs: 3_000, label });
  }

  contended(): string {
    return `hot/${this.chance.between(1, CONTENDED)}`;
  }

  /** A name that was never used before. */
  fresh(): string {
    return `of/${this.#orders.client}/${++this.#made}`;
  }

  /** A document that all clients write from time to time. */
  document(): string {
    return `document/${this.chance.between(1, SHARED_DOCUMENTS)}`;
  }

  text(): { readonly text: string } {
    return { text: "x".repeat(this.chance.between(20, 400)) };
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

  /** Under a lease of its own. */
  async writing(document: string, write: (document: string, lease: Lease) => Promise<unknown>): Promise<unknown> {
    await using lease = await this.acquire(document);
    return await write(document, lease);
  }

  async timed<T>(name: Timing, work: Promise<T>): Promise<T> {
    const startedAt = performance.now();
    try {
      return await work;
    } finally {
      this.took[name] = [...(this.took[name] ?? []), performance.now() - startedAt];
    }
  }
}

/** What the gateway answered, if anything. */
type Work = (tools: Tools) => Promise<unknown>;

const weights: Readonly<Record<string, number>> = {
  ...{ contend: 22, takeFree: 18, giveUp: 9, holdAndRenew: 4, letRunOut: 2, tryIt: 5, takeSeveral: 3, lookAt: 2, openAndClose: 0.5 },
  ...{ readChangeWrite: 8, write: 9, writeNew: 3, erase: 3, read: 8, list: 1, transaction: 2, writeLate: 3, forge: 1, writeToWhatWas: 2 },
};

const operations: Readonly<Record<string, Work>> = {
  contend: async (tools) => {
    const lease = await tools.timed("wait", tools.acquire(tools.contended(), { signal: tools.shutdown.signal }));
    await sleep(tools.chance.between(10, 80));
    await lease.release();
  },
  takeFree: async (tools) => (await tools.timed("acquire", tools.acquire(tools.fresh()))).release(),
  giveUp: async (tools) => {
    const signal = AbortSignal.timeout(tools.chance.between(0, 60));
    await using _lease = await tools.acquire(tools.contended(), { signal });
  },
  holdAndRenew: async (tools) => {
    const lease = await tools.acquire(tools.fresh(), { ttlMs: 500, renew: true });
    const unsubscribe = lease.onDanger(() => {});
    await sleep(tools.chance.between(400, 1_600));
    unsubscribe();
    await lease.extend();
    await lease.release();
  },
  /** Not released: the keys expire, and the signal tells of the end. */
  letRunOut: async (tools) => {
    const { signal } = await tools.acquire(tools.fresh(), { ttlMs: 200 });
    if (!signal.aborted) await once(signal, "abort");
  },
  tryIt: async (tools) => {
    const attempt = await tools.locker.tryAcquire(tools.chance.happens(0.5) ? tools.contended() : tools.fresh());
    if (attempt.ok) await attempt.lease.release();
  },
  takeSeveral: async (tools) => {
    await using _lease = await tools.acquire([tools.fresh(), tools.document(), tools.fresh()], { waitMs: 500 });
  },
  lookAt: async (tools) => void (await tools.locker.inspect(tools.contended())),
  /** As in a script or a function. */
  openAndClose: async (tools) => {
    await using locker = tools.anotherLocker();
    await (await tools.whileWaiting(locker.acquire(tools.fresh()))).release();
  },
  readChangeWrite: async (tools) => {
    const change = (seen: { readonly count?: number } | null) => ({ count: (seen?.count ?? 0) + 1, ...tools.text() });
    await tools.whileWaiting(withResource<{ readonly count?: number }>(tools.locker, tools.gateway, tools.contended(), change));
  },
  /** Sealed first; the sequence number makes it safe to repeat. */
  write: (tools) =>
    tools.writing(tools.document(), async (document, lease) => {
      const sealed = await tools.gateway.seal(document, { lease });
      if (!sealed.ok) return sealed;
      const how = tools.chance.happens(0.7) ? "put" : "patch";
      return await tools.timed("write", tools.gateway[how](document, tools.text(), { lease, seq: 1 }));
    }),
  writeNew: (tools) =>
    tools.writing(tools.fresh(), (document, lease) => {
      return tools.gateway.put(document, tools.text(), { lease, seq: 1, signal: tools.shutdown.signal });
    }),
  erase: (tools) => tools.writing(tools.document(), (document, lease) => tools.gateway.delete(document, { lease, seq: 1 })),
  read: async (tools) => {
    const { gateway, chance, shutdown } = tools;
    const document = chance.happens(0.1) ? `nothing/${chance.between(1, 9)}` : tools.document();
    const first = await tools.timed("read", gateway.get(document, { signal: shutdown.signal }));
    return !first.ok || chance.happens(0.5) ? first : await gateway.get(document, { ifNoneMatch: first.rev });
  },
  list: ({ gateway }) => gateway.list({ prefix: "document/", limit: 20 }),
  transaction: async (tools) => {
    const [first = "", second = ""] = [tools.document(), tools.fresh()];
    await using lease = await tools.acquire([first, second], { waitMs: 500 });
    const value = tools.text();
    const both = [{ op: "put", resource: first, value } as const, { op: "patch", resource: second, value } as const];
    return await tools.gateway.transaction(both, { lease, seq: 1 });
  },
  /** As an earlier holder would after a pause: refused as stale. */
  writeLate: (tools) =>
    tools.writing(tools.document(), async (document, lease) => {
      await tools.gateway.seal(document, { lease });
      return await tools.gateway.put(document, { text: "late" }, { token: lease.token - 1 });
    }),
  forge: (tools) => tools.gateway.put(tools.document(), { text: "forged" }, { token: 999_999_999_999_998 }),
  writeToWhatWas: (tools) =>
    tools.writing(tools.document(), (document, lease) => tools.gateway.put(document, { text: "old" }, { lease, ifMatch: 999_999_999 })),
};

export function load(orders: LoadOrders, self: Process): Traffic {
  startProbe();
  const tools = new Tools(orders);
  const leaking = orders.leaks.map(leakOf);
  const underWay = new Set<{ readonly name: string; readonly at: string }>();
  let done: Record<string, number> = {};
  let failures: Record<string, number> = {};
  const operate = async (): Promise<void> => {
    const [name, perform] = tools.chance.weighted(Object.entries(operations), ([of]) => weights[of] ?? 0);
    const operation = { name, at: new Date().toISOString() };
    underWay.add(operation);
    const answer = await perform(tools).catch((error: unknown) => {
      if (error instanceof LockError || error instanceof GatewayError) return { ok: false, code: error.code };
      throw error;
    });
    underWay.delete(operation);
    done[name] = (done[name] ?? 0) + 1;
    const { ok, code = "" } = (answer ?? {}) as { readonly ok?: boolean; readonly code?: string };
    if (ok === false) failures[code] = (failures[code] ?? 0) + 1;
    for (const leak of leaking) leak();
  };
  /** Each actor at its own times; one that is late does not catch up. */
  const act = async (): Promise<void> => {
    const gapMs = (1_000 * ACTORS) / orders.perSecond;
    for (let nextAt = performance.now(); !self.over.aborted; ) {
      nextAt = Math.max(performance.now(), nextAt - gapMs * Math.log(1 - tools.chance.next()));
      await sleep(nextAt - performance.now());
      if (!self.over.aborted) await operate();
    }
  };
  /** An operation that does not end is named, and fails the process. */
  const overdue = (): void => {
    if (underWay.size === 0) return;
    console.error(`not finished within ${FINISH_MS} ms: ${[...underWay].map(({ name, at }) => `${name} (since ${at})`).join(", ")}`);
    process.exit(1);
  };
  self.over.addEventListener("abort", () => setTimeout(overdue, FINISH_MS).unref());
  return {
    ready: () => firstContact(tools.locker),
    work: async () => void (await Promise.all(Array.from({ length: ACTORS }, act))),
    reading: () => {
      const took = Object.fromEntries(Object.entries(tools.took).map(([name, all]) => [name, median(all)]));
      const reading: Reading = { self: readSelf(), waiting: tools.waiting, operations: done, failures, took };
      [done, failures, tools.took] = [{}, {}, {}];
      return reading;
    },
    close: () => tools.locker.close(),
  };
}

/** The size of a body that is kept. */
const BYTES = 32_768;
/** One open file for every other operation, below the machine's limit. */
const OPERATIONS_PER_FILE = 2;
const MOST_FILES = 5_000;

/** What to do after every operation. */
function leakOf(leak: Leak): () => void {
  const kept: Buffer[] = [];
  let count = 0;
  if (leak === "memory") return () => kept.push(Buffer.alloc(BYTES, 1));
  if (leak === "timers") return () => setInterval(() => {}, 3_600_000);
  return () => {
    count++;
    if (count % OPERATIONS_PER_FILE === 0 && count < OPERATIONS_PER_FILE * MOST_FILES) openSync(process.execPath, "r");
  };
}

/**
 * As many as the gateway remembers at most (packages/gateway/src/write/raise-check.ts). With a
 * higher bound there, the soak would see it grow.
 */
const REMEMBERED = 10_000;
/** Under one lease and in one transaction: the most that a lease may cover. */
const AT_ONCE = 128;
/** While everything starts, answers may be late. */
const FILL_TIMEOUT_MS = 5_000;

export type Filled = Pick<LoadOrders, "redisUrls" | "gatewayUrl" | "namespace">;

/**
 * Before a soak begins: fills the gateway's memory of resources to its bound, as in a gateway that
 * has run for long. At the pace of the soak that would take an hour and look like a leak of two
 * megabytes, and no resource would be forgotten again. Ends early when it is interrupted.
 */
export async function fill({ redisUrls, gatewayUrl, namespace }: Filled, interrupted: AbortSignal): Promise<void> {
  const gateway = createGatewayClient({ url: gatewayUrl, timeoutMs: FILL_TIMEOUT_MS, retry: { attempts: 5 } });
  // The nodes forget these resources early, so that the curves of their memory and keys begin at
  // the level where they stay.
  const timeouts = { nodeTimeoutMs: FILL_TIMEOUT_MS / 5, waitMs: FILL_TIMEOUT_MS };
  const { maxTtlMs } = times;
  const limits = { ttlMs: maxTtlMs, maxTtlMs, retentionMs: maxTtlMs };
  await using locker = createLocker({ nodes: redisUrls, namespace, label: "fill", ...limits, ...timeouts });
  for (let first = 1; first <= REMEMBERED && !interrupted.aborted; first += AT_ONCE) {
    const resources = Array.from({ length: Math.min(AT_ONCE, REMEMBERED - first + 1) }, (_, i) => `before/${first + i}`);
    await using lease = await locker.acquire(resources);
    const puts = resources.map((resource) => ({ op: "put" as const, resource, value: { text: "x".repeat(120) } }));
    const result = await gateway.transaction(puts, { lease });
    if (!result.ok) throw new Error(`the gateway could not be filled: ${result.code}`);
  }
}
