// A real server as one of the two that are compared with each other. Not a test.
import type { RedisNode } from "@palisade/testkit";
import { Redis } from "ioredis";
import type { Server, StoredKey } from "../../simulation/conformance/compared-server.js";
import { sorted } from "../../simulation/conformance/simulated-server.js";

export class RealServer implements Server {
  readonly #node: RedisNode;
  #client: Redis;
  #listener: Redis | undefined;
  #heard: string[] = [];

  constructor(node: RedisNode) {
    this.#node = node;
    this.#client = new Redis(node.directUrl);
  }

  eval = (source: string, keys: readonly string[], args: readonly string[]): Promise<unknown> =>
    this.#client.eval(source, keys.length, ...keys, ...args);

  evalsha = (sha: string, keyCount: number, words: readonly string[]): Promise<unknown> => this.#client.evalsha(sha, keyCount, ...words);

  wait = (ms: number): Promise<void> => this.#node.shiftClock(ms);

  async restart(memory: "kept" | "forgotten"): Promise<void> {
    this.close();
    this.#listener = undefined;
    await this.#node.restart({ forget: memory === "forgotten" });
    this.#client = new Redis(this.#node.directUrl);
  }

  async flush(): Promise<void> {
    await this.#client.flushall();
  }

  async flushScripts(): Promise<void> {
    await this.#client.script("FLUSH");
  }

  /** As it was at the beginning. */
  async clear(): Promise<void> {
    // After a mere disconnect Redis may count a subscription for a moment more.
    await this.#listener?.unsubscribe();
    this.#listener?.disconnect();
    this.#listener = undefined;
    this.#heard = [];
    await Promise.all([this.flush(), this.flushScripts()]);
  }

  async listen(channels: readonly string[]): Promise<void> {
    if (this.#listener === undefined) {
      this.#listener = new Redis(this.#node.directUrl);
      this.#listener.on("message", (channel, text) => this.#heard.push(`${channel}: ${text}`));
    }
    await this.#listener.subscribe(...channels);
  }

  async heard(): Promise<readonly string[]> {
    // Behind everything that was published before.
    await this.#listener?.ping();
    const heard = this.#heard;
    this.#heard = [];
    return heard;
  }

  async stored(): Promise<readonly StoredKey[]> {
    const keys = (await this.#client.keys("*")).sort();
    return Promise.all(
      keys.map(async (key): Promise<StoredKey> => {
        const [leftMs, kind] = await Promise.all([this.#client.pttl(key), this.#client.type(key)]);
        return {
          key,
          value: kind === "hash" ? sorted(await this.#client.hgetall(key)) : ((await this.#client.get(key)) ?? ""),
          leftMs,
        };
      }),
    );
  }

  close(): void {
    this.#client.disconnect();
    this.#listener?.disconnect();
  }
}
