// The locks that people write by hand, for controls: SET NX PX on one Redis, or on several with a majority (published Redlock). They work as long as nothing goes
// wrong, and have no token. Must not be used for anything but to show what happens then.
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";

/** What a careful implementation would do; a control leaves one of them out. */
export interface ClassicOptions {
  readonly urls: readonly string[];
  readonly ttlMs: number;
  /** How many nodes must say yes; the majority when absent. */
  readonly quorum?: number;
  /** Whether to look, after the answers have come, how much of the lease is left. */
  readonly elapsedTime?: "checked" | "ignored";
  /** How long to wait for a node; a quarter of the ttl when absent. */
  readonly nodeTimeoutMs?: number;
}

export interface ClassicLease {
  readonly resource: string;
  readonly owner: string;
  readonly validUntilAt: number;
}

const compareAndDelete = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end return 0`;

export class ClassicLock {
  readonly #options: ClassicOptions;
  readonly #nodes: readonly Redis[];

  constructor(options: ClassicOptions) {
    this.#options = options;
    this.#nodes = options.urls.map((url) => {
      const node = new Redis(url, { enableOfflineQueue: true, maxRetriesPerRequest: 0, retryStrategy: () => 50 });
      // A node that cannot be reached has no vote; its commands fail by themselves.
      node.on("error", () => undefined);
      return node;
    });
  }

  /** One attempt. */
  async take(resource: string): Promise<ClassicLease | undefined> {
    const { ttlMs, elapsedTime = "checked" } = this.#options;
    const owner = randomBytes(8).toString("hex");
    const startedAt = performance.now();
    const votes = this.#nodes.map((node) => this.#said(node.set(keyOf(resource), owner, "PX", ttlMs, "NX")));
    const enough = await this.#enough(votes, "OK");
    const validUntilAt = (elapsedTime === "ignored" ? performance.now() : startedAt) + ttlMs;
    const inTime = elapsedTime === "ignored" || performance.now() < validUntilAt;
    if (enough && inTime) return { resource, owner, validUntilAt };
    await Promise.all(this.#nodes.map((node) => this.#said(node.eval(compareAndDelete, 1, keyOf(resource), owner))));
    return undefined;
  }

  /** With the check of the owner, or without. Says how many nodes removed a key. */
  async release({ resource, owner }: ClassicLease, check: "owner" | "nobody"): Promise<number> {
    const key = keyOf(resource);
    const votes = await Promise.all(
      this.#nodes.map((node) => this.#said(check === "owner" ? node.eval(compareAndDelete, 1, key, owner) : node.del(key))),
    );
    return votes.filter((vote) => vote === 1).length;
  }

  /** Resolves when every node has answered once, or enough of them for a lock. */
  async ready(who: "every node" | "enough nodes"): Promise<void> {
    const answers = this.#nodes.map((node) => this.#said(node.ping()));
    if (who === "every node") await Promise.all(answers);
    else await this.#enough(answers, "PONG");
  }

  /** As soon as a quorum has said the word, or when everybody has said something. */
  #enough(answers: readonly Promise<unknown>[], word: string): Promise<boolean> {
    const { quorum = Math.floor(this.#nodes.length / 2) + 1 } = this.#options;
    let said = 0;
    return new Promise((resolve) => {
      const counted = answers.map(async (answer) => {
        if ((await answer) !== word) return;
        said += 1;
        if (said >= quorum) resolve(true);
      });
      void Promise.all(counted).then(() => resolve(said >= quorum));
    });
  }

  close(): void {
    for (const node of this.#nodes) node.disconnect();
  }

  /** A node's answer, or undefined from one that cannot be asked or is too slow. */
  async #said(answer: Promise<unknown>): Promise<unknown> {
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
  return `classic:${resource}`;
}
