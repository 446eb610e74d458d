// The control: the locks of the papers with a counter beside them. It takes what a quorum grants at once and calls the highest of the counters its token, without
// storing it anywhere else, and lets a node that has lost its memory vote at once. Everything that Palisade adds is missing on purpose; nothing else is.
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { type ClientOrders, RESOURCE } from "./client-words.js";
import { type Contender, type Held, WAIT_MS, type Wish } from "./contender.js";

const grant = "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return redis.call('INCR', KEYS[2]) end return 0";
const release = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const lockKey = `{palisade}:lock:${RESOURCE}`;
const tokenKey = `{palisade}:token:${RESOURCE}`;

export function naive({ urls, nodeTimeoutMs }: ClientOrders): Contender {
  const careful = { enableOfflineQueue: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 };
  const options = { ...careful, commandTimeout: nodeTimeoutMs, retryStrategy: () => 20 };
  const nodes = urls.map((url) => new Redis(url, options).on("error", ignored));
  const quorum = Math.floor(nodes.length / 2) + 1;
  const giveBack = (owner: string): Promise<unknown> => Promise.allSettled(nodes.map((node) => node.eval(release, 1, lockKey, owner)));

  const attempt = async ({ ttlMs }: Wish): Promise<Held | undefined> => {
    const owner = randomUUID();
    const startedAt = performance.now();
    const tokens = await firstGrants(
      nodes.map((node) => node.eval(grant, 2, lockKey, tokenKey, owner, ttlMs) as Promise<number>),
      quorum,
    );
    const leftMs = (): number => Math.max(0, ttlMs - ttlMs * 0.01 - 2 - (performance.now() - startedAt));
    if (tokens.length >= quorum && leftMs() > ttlMs / 10)
      return hold({ token: Math.max(...tokens), leftMs, giveBack: () => giveBack(owner) });
    await giveBack(owner);
    return undefined;
  };

  return {
    ready: () => Promise.all(nodes.map((node) => node.status === "ready" || once(node, "ready"))),
    acquire: async (wish) => {
      for (const startedAt = performance.now(); performance.now() - startedAt < WAIT_MS; await sleep(Math.random() * 20)) {
        const held = await attempt(wish);
        if (held !== undefined) return held;
      }
      throw Object.assign(new Error("not to be had"), { code: "LOCK_HELD" });
    },
    close: async () => {
      for (const node of nodes) node.disconnect();
    },
  };
}

/** As soon as there is a quorum, or everybody has answered. */
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

function hold({ token, leftMs, giveBack }: { token: number; leftMs: () => number; giveBack: () => Promise<unknown> }): Held {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), leftMs());
  return {
    token,
    signal: controller.signal,
    remainingMs: leftMs,
    release: () => {
      clearTimeout(timer);
      return giveBack();
    },
  };
}

// Each failed command tells by itself.
function ignored(): void {}
