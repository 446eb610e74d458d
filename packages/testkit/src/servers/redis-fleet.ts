// N independent Redis masters, each behind its own fault proxy, for as long as a test or a demo
// needs them. The servers know nothing of each other, which is what the lock asks of its nodes.
import type { FaultProxy } from "../proxy/fault-proxy.js";
import type { AppendFsync, ProviderName, RedisProvider, RedisServerSpec } from "../redis/provider.js";
import { chooseRedis } from "./choose-provider.js";
import { RedisNode } from "./redis-node.js";

export interface RedisFleetOptions {
  readonly nodes: number;
  /** "always" by default: what an acknowledged write needs to survive a kill. */
  readonly appendfsync?: AppendFsync;
  /** By default `PALISADE_TEST_PROVIDER`, else this machine, else containers. */
  readonly provider?: ProviderName | RedisProvider;
  /** "wasm": without a Redis server take Valkey in WebAssembly, which keeps nothing on disk. */
  readonly fallback?: "wasm";
  /** More redis.conf directives, e.g. `{ "maxmemory-policy": "allkeys-lru" }`. */
  readonly config?: Readonly<Record<string, string>>;
  /** "shiftable" by default; "real" leaves the servers exactly as they are, for measurements. */
  readonly clock?: RedisServerSpec["clock"];
}

export class RedisFleet implements AsyncDisposable {
  /** n1, n2, … */
  readonly nodes: readonly RedisNode[];
  /** One line for a human: how many of what run, and where they come from. */
  readonly description: string;

  private constructor(nodes: readonly RedisNode[], description: string) {
    this.nodes = nodes;
    this.description = description;
  }

  static async start(options: RedisFleetOptions): Promise<RedisFleet> {
    const { nodes: count, appendfsync = "always", config = {}, clock = "shiftable" } = options;
    if (!Number.isInteger(count) || count < 1) throw new RangeError(`a fleet has one node or more, not ${count}`);
    const { provider, origin } = await chooseRedis(options);
    const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
    const started = await Promise.allSettled(
      names.map(async (name) => RedisNode.inFrontOf(name, await provider.start({ name, appendfsync, config, clock }))),
    );
    const nodes = started.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const failures = started.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as Error] : []));
    if (failures.length > 0) {
      await Promise.all(nodes.map((node) => node.stop()));
      throw failures.length === 1 ? failures[0] : new AggregateError(failures, failures.map((failure) => failure.message).join("\n"));
    }
    const log = provider.name === "wasm" ? "" : `, appendfsync ${appendfsync}`;
    return new RedisFleet(nodes, `${count} × ${origin}${log}`);
  }

  /** Through the proxies; the same over restarts. */
  get urls(): string[] {
    return this.nodes.map((node) => node.url);
  }

  /** The node called n1, n2, …; for when an index would need explaining. */
  node(name: string): RedisNode {
    const found = this.nodes.find((node) => node.name === name);
    if (found === undefined) throw new RangeError(`no node is called ${name}; there are ${this.nodes.map((node) => node.name).join(", ")}`);
    return found;
  }

  /** More proxies to the same servers: one client's network, which can break alone. */
  async anotherWay(): Promise<FleetWay> {
    return new FleetWay(await Promise.all(this.nodes.map((node) => node.anotherWay())));
  }

  /** Ends every server and removes all they left. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

// One more set of proxies in front of a fleet: one client's part of the network.
export class FleetWay {
  /** In the order of the fleet's nodes, for faults beyond the shorthands below. */
  readonly proxies: readonly FaultProxy[];

  constructor(proxies: readonly FaultProxy[]) {
    this.proxies = proxies;
  }

  /** In the order of the fleet's nodes. */
  get urls(): string[] {
    return this.proxies.map((proxy) => `redis://${proxy.host}:${proxy.port}`);
  }

  async partition(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.partition()));
  }

  async refuse(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.refuse()));
  }

  async heal(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.heal()));
  }
}
