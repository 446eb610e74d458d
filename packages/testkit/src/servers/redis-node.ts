// One member of a fleet: a real server behind its fault proxy, whose address outlives restarts.
import { FaultProxy } from "../proxy/fault-proxy.js";
import type { Direction } from "../proxy/rules.js";
import { runCommand } from "../redis/command.js";
import type { RedisServer } from "../redis/provider.js";

export class RedisNode {
  readonly name: string;
  /** The way clients take, for faults beyond the shorthands below. */
  readonly proxy: FaultProxy;
  readonly #server: RedisServer;
  readonly #moreProxies = new Set<FaultProxy>();

  private constructor(name: string, server: RedisServer, proxy: FaultProxy) {
    this.name = name;
    this.#server = server;
    this.proxy = proxy;
  }

  /** Takes over a running server. */
  static async inFrontOf(name: string, server: RedisServer): Promise<RedisNode> {
    return new RedisNode(name, server, await FaultProxy.start({ upstream: server }));
  }

  /** Through the proxy; the same over restarts. */
  get url(): string {
    return `redis://${this.proxy.host}:${this.proxy.port}`;
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
    await this.#server.kill();
    await Promise.all(this.#proxies.map((proxy) => proxy.serverDown()));
  }

  /** Kills it if it runs and starts it, with `forget` without its memory. Faults stay on. */
  async restart({ forget = false }: { readonly forget?: boolean } = {}): Promise<void> {
    await this.kill();
    await this.#server.restart({ memory: forget ? "forgotten" : "kept" });
    await Promise.all(this.#proxies.map((proxy) => proxy.serverUp(this.#server)));
  }

  /** SIGSTOP: it stands still, and its connections stay. */
  pause(): Promise<void> {
    return this.#server.pause();
  }

  /** SIGCONT. */
  resume(): Promise<void> {
    return this.#server.resume();
  }

  /** Moves the server's wall clock from where it is now; its monotonic clock goes on. */
  shiftClock(byMs: number): Promise<void> {
    return this.#server.shiftClock(byMs);
  }

  /** REPLICAOF, past all proxies; `cli("REPLICAOF", "NO", "ONE")` makes it a master again. */
  async follow(master: RedisNode): Promise<void> {
    const { host, port } = await master.#server.amongServers();
    await this.cli("REPLICAOF", host, port);
  }

  partition(): Promise<void> {
    return this.proxy.partition();
  }

  slow(delayMs: number): void {
    this.proxy.slow(delayMs);
  }

  dropReplies(): void {
    this.proxy.dropReplies();
  }

  dropRequests(): void {
    this.proxy.dropRequests();
  }

  holdReplies(): void {
    this.proxy.holdReplies();
  }

  holdRequests(): void {
    this.proxy.holdRequests();
  }

  deliver(direction?: Direction): void {
    this.proxy.deliver(direction);
  }

  refuse(): Promise<void> {
    return this.proxy.refuse();
  }

  cut(): void {
    this.proxy.cut();
  }

  cutAfter(afterBytes: number, direction?: Direction): void {
    this.proxy.cutAfter(afterBytes, direction);
  }

  heal(): Promise<void> {
    return this.proxy.heal();
  }

  /** One command over a connection of its own past the proxy; the reply as ioredis gives it. */
  cli(command: string, ...args: readonly (string | number)[]): Promise<unknown> {
    return runCommand({ url: this.directUrl, name: this.name }, command, args);
  }

  /** One more proxy to this server: one client's network, which can break alone. */
  async anotherWay(): Promise<FaultProxy> {
    const proxy = await FaultProxy.start({ upstream: this.#server });
    this.#moreProxies.add(proxy);
    return proxy;
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#proxies.map((proxy) => proxy.stop()), this.#server.stop()]);
  }

  get #proxies(): readonly FaultProxy[] {
    return [this.proxy, ...this.#moreProxies];
  }
}
