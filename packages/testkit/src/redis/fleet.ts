// N independent Redis masters, each behind its own fault proxy, for as long as a test or a demo
// needs them. The servers know nothing of each other, which is what the lock asks of its nodes.
import { allStarted } from "../process/all-started.js";
import { FaultProxy } from "../proxy/fault-proxy.js";
import { chooseRedis } from "../servers/choose.js";
import type { AppendFsync, RedisProvider, RedisServer, RedisServerSpec } from "./server.js";

/** One member: the way that clients take, with all of its faults, and the real server behind it; its address outlives restarts. */
export class RedisNode extends FaultProxy {
  readonly name: string;
  readonly #server: RedisServer;
  readonly #otherWays = new Set<FaultProxy>();
  #isAwake = true;
  #isClockProven = false;

  private constructor(name: string, server: RedisServer) {
    super(server);
    this.name = name;
    this.#server = server;
  }

  /** Takes over a running server. */
  static async inFrontOf(name: string, server: RedisServer): Promise<RedisNode> {
    return await new RedisNode(name, server).open();
  }

  /** Through the proxy; the same over restarts. */
  get url(): string {
    return `redis://${this.host}:${this.port}`;
  }

  /** Past the proxy. */
  get directUrl(): string {
    return `redis://${this.#server.host}:${this.#server.port}`;
  }

  /** Of the server on this machine; undefined while it is killed, or when it runs elsewhere. */
  get pid(): number | undefined {
    return this.#server.pid;
  }

  /** SIGKILL. Its connections die, and new ones are refused. */
  async kill(): Promise<void> {
    this.#isAwake = false;
    await this.#server.kill();
    await Promise.all(this.#ways.map((way) => way.serverDown()));
  }

  /** Kills it if it runs and starts it, with `forget` without its memory. Faults stay on. */
  async restart({ forget = false }: { readonly forget?: boolean } = {}): Promise<void> {
    await this.kill();
    await this.#server.restart({ memory: forget ? "forgotten" : "kept" });
    this.#isAwake = true;
    await Promise.all(this.#ways.map((way) => way.serverUp(this.#server)));
  }

  /** SIGSTOP: it stands still, and its connections stay. */
  async pause(): Promise<void> {
    await this.#server.pause();
    this.#isAwake = false;
  }

  /** SIGCONT. */
  async resume(): Promise<void> {
    await this.#server.resume();
    this.#isAwake = true;
  }

  /** Moves the server's wall clock from where it is now; its monotonic clock goes on. */
  async shiftClock(byMs: number): Promise<void> {
    const { clock } = this.#server;
    if ("fixed" in clock) throw new Error(`the clock of ${this.name} ${clock.fixed}`);
    clock.shift(byMs);
    // Whether the server looks at it at all is seen once.
    if (this.#isClockProven || !this.#isAwake) return;
    const expected = Date.now() + clock.offsetMs;
    const [seconds] = (await this.cli("TIME")) as readonly string[];
    if (!(Math.abs(Number(seconds) * 1_000 - expected) < CLOCK_TOLERANCE_MS))
      throw new Error(`the clock of ${this.name} did not move: it shows ${seconds} s, expected about ${expected} ms`);
    this.#isClockProven = true;
  }

  /** REPLICAOF, past all proxies; `cli("REPLICAOF", "NO", "ONE")` makes it a master again. */
  async follow(master: RedisNode): Promise<void> {
    await this.cli("REPLICAOF", master.#server.host, master.#server.port);
  }

  /** One command over a connection of its own past the proxy; the reply as ioredis gives it. */
  cli(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return runCommand(this, command, args);
  }

  /** One more proxy to this server: one client's network, which can break alone. */
  async anotherWay(): Promise<FaultProxy> {
    const way = await FaultProxy.start({ upstream: this.#server });
    this.#otherWays.add(way);
    return way;
  }

  override async stop(): Promise<void> {
    await Promise.all([super.stop(), ...[...this.#otherWays].map((way) => way.stop()), this.#server.stop()]);
  }

  get #ways(): readonly FaultProxy[] {
    return [this, ...this.#otherWays];
  }
}

export interface RedisFleetOptions {
  readonly nodes: number;
  /** "always" by default: what an acknowledged write needs to survive a kill. */
  readonly appendfsync?: AppendFsync;
  /** By default `PALISADE_TEST_PROVIDER`, else containers, else this machine. */
  readonly provider?: RedisProvider["name"] | RedisProvider;
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
    const { provider, origin } = await chooseRedis({ provider: options.provider, fallback: options.fallback });
    const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
    const nodes = await allStarted<RedisNode[]>(
      names.map(async (name) => RedisNode.inFrontOf(name, await provider.start({ name, appendfsync, config, clock }))),
    );
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
    const proxies = await Promise.all(this.nodes.map((node) => node.anotherWay()));
    return {
      proxies,
      urls: proxies.map(({ host, port }) => `redis://${host}:${port}`),
      refuse: () => Promise.all(proxies.map((proxy) => proxy.refuse())),
    };
  }

  /** Ends every server and removes all they left. */
  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

/** One more set of proxies in front of a fleet: one client's part of the network. */
export interface FleetWay {
  /** In the order of the fleet's nodes, as their addresses. */
  readonly proxies: readonly FaultProxy[];
  readonly urls: readonly string[];
  refuse(): Promise<unknown>;
}

const COMMAND_TIMEOUT_MS = 10_000;
const CLOCK_TOLERANCE_MS = 5_000;

/** ioredis's reply. An error reply is thrown as it is; a server that does not answer is named. */
async function runCommand(node: RedisNode, command: string, args: readonly (string | number)[]): Promise<unknown> {
  // Loaded when it is needed: it is most of what a program that imports the testkit would wait for.
  const { Redis, ReplyError } = await import("ioredis");
  const client = new Redis(node.directUrl, {
    lazyConnect: true,
    retryStrategy: null,
    connectTimeout: COMMAND_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    disconnectTimeout: 100,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
  });
  // ioredis rejects with "Connection is closed." and tells the reason only here.
  let reason: Error | undefined;
  client.on("error", (cause: Error) => {
    reason = cause;
  });
  try {
    await client.connect();
    return await client.call(command, ...args);
  } catch (cause) {
    if (cause instanceof ReplyError) throw cause;
    throw new Error(`${node.name} did not answer ${command}: ${(reason ?? (cause as Error)).message}`, { cause });
  } finally {
    client.disconnect();
  }
}
