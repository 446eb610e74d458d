// Traffic of the lock profile: acquires and releases the one resource so many times. Some leases
// reach their end: by staying, by renewing, by being stopped. And the control, another lock.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { type Chance, chanceOf } from "../chance.js";
import { Journal, waited } from "../history.js";
import type { LockOrders, Process, Traffic } from "./messages.js";
import { allowanceMs, firstContact, type HeldLease, type Lease, type Lock, palisadeLock, RecordedLock } from "./recorded-lock.js";

export const RESOURCE = "the one";
export const lockTimes = { ttlMs: 400, maxTtlMs: 800, nodeTimeoutMs: 60 };
const LONG_TTL_MS = 150;
const WAIT_MS = 3_000;

export interface Hold {
  readonly how: "briefly" | "until told" | "stopped past its end" | "renewing";
  readonly ttlMs: number;
  readonly holdMs: number;
}

function planHold(chance: Chance, { leases, longHolds }: LockOrders): Hold {
  if (!chance.happens(longHolds / leases))
    return { how: "briefly", ttlMs: lockTimes.ttlMs, holdMs: chance.happens(0.5) ? 0 : chance.between(1, 2) };
  const how = chance.one(["until told", "until told", "stopped past its end", "renewing"] as const);
  if (how === "until told") return { how, ttlMs: LONG_TTL_MS, holdMs: lockTimes.maxTtlMs * 4 };
  if (how === "renewing") return { how, ttlMs: LONG_TTL_MS, holdMs: LONG_TTL_MS * (1 + chance.next() * 2) };
  return { how, ttlMs: LONG_TTL_MS, holdMs: LONG_TTL_MS + chance.between(20, 300) };
}

/** Holds the lease as planned, or until its signal tells of the end, and releases it. */
export async function hold(lease: HeldLease, { how, holdMs }: Hold, { pause }: Pick<Process, "pause">): Promise<void> {
  if (how === "stopped past its end") await pause(holdMs);
  else if (holdMs > 0 && !lease.signal.aborted) await waited(holdMs, lease.signal);
  await lease.release();
}

export function oneLock(orders: LockOrders, self: Process): Traffic {
  const { name, client, seed, redisUrls } = orders;
  const journal = new Journal(orders.journal);
  const create = orders.lock === "palisade" ? palisadeLock : unsealedLock;
  const lock = new RecordedLock(create(redisUrls, { ...lockTimes, label: name }), journal);
  const chance = chanceOf(seed, name);
  journal.recordPauses(client);
  return {
    ready: () => firstContact(lock),
    work: async () => {
      for (let taken = 0; taken < orders.leases && !self.over.aborted; ) {
        const plan = planHold(chance, orders);
        try {
          const lease = await lock.acquire(RESOURCE, { ttlMs: plan.ttlMs, renew: plan.how === "renewing", waitMs: WAIT_MS });
          await hold(lease, plan, self);
          taken++;
          self.count("done");
        } catch (error) {
          if ((error as { code?: string }).code === undefined) throw error;
          self.count("refused");
        }
      }
    },
    close: async () => {
      await lock.close();
      journal.close();
    },
  };
}

const GRANT = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end return 0";
const RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/**
 * The lock of the Redlock page with a counter beside it. It takes what a quorum grants and calls the
 * highest counter its token, without sealing it, and lets a node that has lost its memory vote at
 * once. Nothing else is missing.
 */
export function unsealedLock(urls: readonly string[], { nodeTimeoutMs }: { readonly nodeTimeoutMs: number }): Lock {
  const careful = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
  // Nothing is asked before the first command: on a busy machine it would time out again and again.
  const silent = { protocol: 2 as const, disableClientInfo: true, enableReadyCheck: false };
  const options = { ...careful, ...silent, commandTimeout: nodeTimeoutMs, retryStrategy: () => 20 };
  const nodes = urls.map((url) => new Redis(url, options).on("error", ignored));
  const quorum = Math.floor(nodes.length / 2) + 1;

  const tryOnce = async (resource: string, ttlMs: number): Promise<Lease | undefined> => {
    const owner = randomUUID();
    const [lockKey, tokenKey] = [`{palisade}:lock:${resource}`, `{palisade}:token:${resource}`];
    const giveBack = (): Promise<unknown> => Promise.allSettled(nodes.map((node) => node.eval(RELEASE, 1, lockKey, owner)));
    const startedAt = performance.now();
    const grants = nodes.map((node) => node.eval(GRANT, 2, lockKey, tokenKey, owner, ttlMs) as Promise<number>);
    const tokens = await firstGrants(grants, quorum);
    const remainingMs = (): number => Math.max(0, ttlMs - allowanceMs(ttlMs) - (performance.now() - startedAt));
    if (tokens.length >= quorum && remainingMs() > ttlMs / 10)
      return leaseOf({ token: Math.max(...tokens), resource, remainingMs, giveBack });
    await giveBack();
    return undefined;
  };

  return {
    ready: () => Promise.all(nodes.map((node) => node.status === "ready" || once(node, "ready"))),
    acquire: async (resources, { ttlMs, waitMs = 0 }) => {
      for (const startedAt = performance.now(); performance.now() - startedAt < waitMs; await sleep(Math.random() * 20)) {
        const lease = await tryOnce(String(resources), ttlMs);
        if (lease !== undefined) return lease;
      }
      throw Object.assign(new Error("the lock is held"), { code: "LOCK_HELD" });
    },
    close: async () => {
      for (const node of nodes) node.disconnect();
    },
  };
}

/** As soon as there is a quorum, or every node has answered. */
function firstGrants(answers: readonly Promise<number>[], quorum: number): Promise<readonly number[]> {
  return new Promise((resolve) => {
    const tokens: number[] = [];
    let answered = 0;
    const count = (token: number): void => {
      if (token > 0) tokens.push(token);
      if (++answered === answers.length || tokens.length === quorum) resolve([...tokens]);
    };
    for (const answer of answers) answer.then(count, () => count(0));
  });
}

type Grant = Pick<Lease, "token" | "resource" | "remainingMs"> & { readonly giveBack: () => Promise<unknown> };

function leaseOf({ token, resource, remainingMs, giveBack }: Grant): Lease {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), remainingMs());
  const release = (): Promise<unknown> => {
    clearTimeout(timer);
    return giveBack();
  };
  return { token, resource, resources: [resource], signal: controller.signal, remainingMs, release };
}

// Each failed command rejects by itself.
function ignored(): void {}
