// A lock without tokens, as people write it by hand, for controls: SET NX PX on one Redis, or on
// several with a majority (published Redlock). It shows what happens when something goes wrong, and
// is for nothing else.
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";

/** What a careful implementation checks; a control leaves one of the checks out. */
export interface PlainLockOptions {
  readonly urls: readonly string[];
  readonly ttlMs: number;
  /** How many nodes must say yes; the majority when absent. */
  readonly quorum?: number;
  /** Whether to look, after the answers have come, how much of the lease is left. */
  readonly elapsedTime?: "checked" | "ignored";
  /** How long to wait for a node; a quarter of the ttl when absent. */
  readonly nodeTimeoutMs?: number;
}

const COMPARE_AND_DELETE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0';

export class PlainLock {
  readonly #options: PlainLockOptions;
  readonly #nodes: readonly Redis[];
  readonly #leases = new Map<string, { readonly owner: string; readonly validUntilAt: number }>();

  constructor(options: PlainLockOptions) {
    this.#options = options;
    this.#nodes = options.urls.map((url) => {
      const node = new Redis(url, { enableOfflineQueue: true, maxRetriesPerRequest: 0, retryStrategy: () => 50 });
      // A node that cannot be reached has no vote; its commands fail by themselves.
      node.on("error", () => undefined);
      return node;
    });
  }

  /** Asks each node once. */
  async take(resource: string): Promise<boolean> {
    const { ttlMs, elapsedTime = "checked" } = this.#options;
    const owner = randomBytes(8).toString("hex");
    const startedAt = performance.now();
    const votes = this.#nodes.map((node) => this.#answerOf(node.set(keyOf(resource), owner, "PX", ttlMs, "NX")));
    const enough = await this.#enough(votes, "OK");
    const validUntilAt = (elapsedTime === "ignored" ? performance.now() : startedAt) + ttlMs;
    const inTime = elapsedTime === "ignored" || performance.now() < validUntilAt;
    if (enough && inTime) this.#leases.set(resource, { owner, validUntilAt });
    else await this.#delete(resource, owner);
    return enough && inTime;
  }

  /** By the holder's own clock. */
  remainingMs(resource: string): number {
    return (this.#leases.get(resource)?.validUntilAt ?? 0) - performance.now();
  }

  /** With the check of the owner, or without. Returns how many nodes removed a key. */
  async release(resource: string, check: "owner" | "none"): Promise<number> {
    const lease = this.#leases.get(resource);
    if (lease === undefined) throw new Error(`this worker never took ${resource}`);
    return await this.#delete(resource, check === "owner" ? lease.owner : undefined);
  }

  async #delete(resource: string, owner: string | undefined): Promise<number> {
    const key = keyOf(resource);
    const ask = (node: Redis): Promise<unknown> => (owner === undefined ? node.del(key) : node.eval(COMPARE_AND_DELETE, 1, key, owner));
    const votes = await Promise.all(this.#nodes.map((node) => this.#answerOf(ask(node))));
    return votes.filter((vote) => vote === 1).length;
  }

  /** Resolves when every node has answered once, or enough of them for a lock. */
  async ready(awaited: "every node" | "enough nodes"): Promise<void> {
    const answers = this.#nodes.map((node) => this.#answerOf(node.ping()));
    if (awaited === "every node") await Promise.all(answers);
    else await this.#enough(answers, "PONG");
  }

  /** Resolves as soon as a quorum has given this answer, or when every node has answered. */
  #enough(answers: readonly Promise<unknown>[], wanted: string): Promise<boolean> {
    const { quorum = Math.floor(this.#nodes.length / 2) + 1 } = this.#options;
    let count = 0;
    return new Promise((resolve) => {
      const counted = answers.map(async (answer) => {
        if ((await answer) !== wanted) return;
        count += 1;
        if (count >= quorum) resolve(true);
      });
      void Promise.all(counted).then(() => resolve(count >= quorum));
    });
  }

  close(): void {
    for (const node of this.#nodes) node.disconnect();
  }

  /** A node's answer, or undefined from one that cannot be asked or is too slow. */
  async #answerOf(answer: Promise<unknown>): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined;
    const tooSlow = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), this.#options.nodeTimeoutMs ?? this.#options.ttlMs / 4);
    });
    try {
      return await Promise.race([answer.catch(() => undefined), tooSlow]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function keyOf(resource: string): string {
  return `plain:${resource}`;
}
