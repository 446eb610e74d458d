// A TCP proxy in front of one server that breaks the network on demand. It knows bytes, not
// protocols: Redis, Postgres and HTTP are the same to it. No byte is reordered, repeated or
// invented. A fault is on when its call returns (the promise is for a port that opens or closes);
// faults add up until `heal()`.
import { createServer, type Socket } from "node:net";
import { setTimeout as expire } from "node:timers/promises";
import { returnPort, takePort } from "../process/port-block.js";
import {
  Connection,
  type Direction,
  type Gate,
  noTraffic,
  type Rules,
  reset,
  type Traffic,
  transparent,
  type Upstream,
} from "./connection.js";

export class FaultProxy {
  readonly host = "127.0.0.1";
  readonly #rules: Rules = transparent();
  readonly #traffic: Traffic = noTraffic();
  readonly #connections = new Set<Connection>();
  readonly #watchers = new Set<() => void>();
  readonly #listener: Listener;
  #upstream: Upstream;
  #serverDown = false;
  #stopped = false;

  protected constructor(upstream: Upstream) {
    this.#upstream = upstream;
    this.#listener = new Listener((client) => {
      if (this.#rules.refusing || this.#stopped) return reset(client);
      const connection = new Connection({
        client,
        rules: this.#rules,
        traffic: this.#traffic,
        onTraffic: () => this.#changed(),
        onClosed: () => this.#connections.delete(connection) && this.#changed(),
      });
      this.#connections.add(connection);
      if (!this.#rules.newConnectionsHang) connection.connect(this.#upstream);
      this.#changed();
    });
  }

  static async start({ upstream }: { readonly upstream: Upstream }): Promise<FaultProxy> {
    return await new FaultProxy(upstream).open();
  }

  /** Once, on a free port. */
  protected async open(): Promise<this> {
    await this.#listener.openSomewhere();
    return this;
  }

  /** Stays the same for the proxy's whole life. */
  get port(): number {
    return this.#listener.port;
  }

  /** The URL of the server, with this proxy's host and port in place of the server's own. */
  urlOf(serverUrl: string): string {
    const url = new URL(serverUrl);
    url.hostname = this.host;
    url.port = String(this.port);
    return url.href;
  }

  /** Connections from clients that are still open here. */
  get connections(): number {
    return this.#connections.size;
  }

  /** Bytes passed and dropped since the start, and bytes that wait in the proxy now. */
  get traffic(): Traffic {
    return this.#traffic;
  }

  /** Nothing passes either way and connections stay open; new ones find no server. */
  partition(): Promise<void> {
    this.#rules.newConnectionsHang = true;
    this.#setGate("requests", "drop");
    this.#setGate("replies", "drop");
    return this.#openOrClose();
  }

  /** Every chunk takes this much longer, each way. */
  slow(delayMs: number): void {
    if (!(delayMs >= 0)) throw new RangeError(`a delay must be a number of milliseconds from 0 up, not ${delayMs}`);
    this.#rules.delayMs = delayMs;
    this.#pump();
  }

  /** Requests reach the server, its replies are discarded. */
  dropReplies(): void {
    this.#setGate("replies", "drop");
  }

  /** Requests are discarded: the server never sees them. */
  dropRequests(): void {
    this.#setGate("requests", "drop");
  }

  /** Replies are kept in the proxy, until `deliver()` or `heal()`. */
  holdReplies(): void {
    this.#setGate("replies", "hold");
  }

  /** Requests stay in the proxy, as packets under way, and arrive even if their sender is gone. */
  holdRequests(): void {
    this.#setGate("requests", "hold");
  }

  /** What is held is delivered in order, and traffic flows again; other faults stay. */
  deliver(direction?: Direction): void {
    for (const name of ["requests", "replies"] as const) {
      if ((direction ?? name) === name && this.#rules[name].gate === "hold") this.#setGate(name, "pass");
    }
  }

  /** Cuts every connection, and has new ones refused. */
  refuse(): Promise<void> {
    this.#rules.refusing = true;
    this.cut();
    return this.#openOrClose();
  }

  /** Cuts every connection once; new ones are welcome. */
  cut(): void {
    for (const connection of this.#connections) connection.cut();
  }

  /** Each connection is cut after this many more bytes in the direction; 0 is before the next. */
  cutAfter(afterBytes: number, direction: Direction = "replies"): void {
    if (!Number.isInteger(afterBytes) || afterBytes < 0) throw new RangeError(`bytes are counted from 0 up, not ${afterBytes}`);
    this.#rules[direction].cut = { afterBytes };
  }

  /** Transparent: what was held is delivered, connections that lost bytes are cut, new pass. */
  async heal(): Promise<void> {
    Object.assign(this.#rules, transparent());
    for (const connection of [...this.#connections]) {
      connection.connect(this.#upstream);
      connection.pump();
      if (connection.lostBytes) connection.finish();
    }
    await this.#openOrClose();
  }

  /** The server is gone: new connections are refused, as its own port would refuse them. */
  async serverDown(): Promise<void> {
    this.#serverDown = true;
    await this.#openOrClose();
  }

  /** The server is there again, perhaps elsewhere. */
  async serverUp(upstream: Upstream = this.#upstream): Promise<void> {
    this.#upstream = upstream;
    this.#serverDown = false;
    await this.#openOrClose();
  }

  /** Resolves when the condition holds, looked at when bytes move or connections change. */
  async until(condition: (traffic: Traffic) => boolean, timeoutMs = 5_000): Promise<void> {
    if (condition(this.#traffic)) return;
    const limit = new AbortController();
    let watcher = (): void => {};
    const met = new Promise<"met">((resolve) => {
      watcher = () => condition(this.#traffic) && resolve("met");
      this.#watchers.add(watcher);
    });
    // Aborted: it was met.
    const late = expire(timeoutMs, "late" as const, { signal: limit.signal }).catch(() => "met" as const);
    const outcome = await Promise.race([met, late]);
    limit.abort();
    this.#watchers.delete(watcher);
    if (outcome === "late")
      throw new Error(`not seen by the proxy within ${timeoutMs} ms; traffic so far: ${JSON.stringify(this.#traffic)}`);
  }

  /** Ends every connection and gives the port back. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.cut();
    await this.#listener.close();
  }

  #setGate(direction: Direction, gate: Gate): void {
    this.#rules[direction].gate = gate;
    this.#pump();
  }

  #pump(): void {
    for (const connection of [...this.#connections]) connection.pump();
  }

  // In a partition no client is told that the server is gone.
  #openOrClose(): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    const { refusing, newConnectionsHang } = this.#rules;
    return this.#listener.set(refusing || (this.#serverDown && !newConnectionsHang) ? "closed" : "open");
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

const ATTEMPTS = 50;

/** The proxy's port, which stays the same while it is closed and opened again. */
class Listener {
  readonly host = "127.0.0.1";
  #port = 0;
  #door: { readonly shut: () => void } | undefined;
  #wanted = false;
  #opening: Promise<void> = Promise.resolve();
  readonly #onClient: (client: Socket) => void;

  constructor(onClient: (client: Socket) => void) {
    this.#onClient = onClient;
  }

  get port(): number {
    return this.#port;
  }

  /** Opens on a free port. */
  async openSomewhere(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      this.#port = await takePort();
      try {
        this.#wanted = true;
        return await this.#listen();
      } catch (cause) {
        if ((cause as NodeJS.ErrnoException).code !== "EADDRINUSE" || attempt === ATTEMPTS) throw cause;
      }
    }
  }

  /** Closed, the system refuses clients. The last call counts, and is true when it resolves. */
  async set(state: "open" | "closed"): Promise<void> {
    this.#wanted = state === "open";
    if (!this.#wanted) this.#door?.shut();
    const open = (): Promise<void> | undefined => (this.#door === undefined && this.#wanted ? this.#listen() : undefined);
    // An earlier failure was that caller's to report.
    this.#opening = this.#opening.then(open, open);
    await this.#opening;
  }

  /** Closed for good. */
  async close(): Promise<void> {
    await this.set("closed");
    returnPort(this.#port);
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const server = createServer({ allowHalfOpen: true, noDelay: true }, this.#onClient);
      const gone = (): void => {
        this.#door = undefined;
      };
      // The port is bound a moment before we are told. Earlier than that there is nothing to shut
      // yet, and it is done when we are told.
      const shut = (): void => {
        if (!server.listening) return;
        server.close();
        gone();
        resolve();
      };
      const failed = (cause: Error): void => {
        gone();
        reject(cause);
      };
      this.#door = { shut };
      server.once("error", failed);
      server.listen({ port: this.#port, host: this.host, exclusive: true }, () => {
        server.unref();
        server.off("error", failed);
        if (this.#wanted) resolve();
        else shut();
      });
    });
  }
}
