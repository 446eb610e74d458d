// A TCP proxy in front of one server that breaks the network on demand. It knows bytes, not
// protocols: Redis, Postgres and HTTP are the same to it. No byte is reordered, repeated or
// invented. A fault is on when its call returns (the promise is for a port that opens or closes);
// faults add up until `heal()`. The rules are plain data that all connections share.
import { once } from "node:events";
import { createServer, type Server, Socket } from "node:net";
import { setTimeout as expire } from "node:timers/promises";
import { returnPort, takePort } from "../process/port-block.js";

export interface Address {
  readonly host: string;
  readonly port: number;
}

export function addressOf(url: string): Address {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}

export function throughHere(serverUrl: string, { host, port }: Address): string {
  return Object.assign(new URL(serverUrl), { hostname: host, port: String(port) }).href;
}

/** Requests flow from the client to the server, replies the other way. */
export type Direction = "requests" | "replies";

interface DirectionRules {
  /** pass on · discard in silence · keep, in order, until told to deliver */
  gate: "pass" | "drop" | "hold";
  /** Each connection, old or new, ends after this many more bytes. */
  cut: { readonly afterBytes: number } | undefined;
}

interface Rules extends Record<Direction, DirectionRules> {
  /** Every chunk waits this long in the proxy, in both directions. */
  delayMs: number;
  /** New connections get no way to the server, and no answer. */
  newConnectionsHang: boolean;
  /** New connections are refused by the operating system. */
  refusing: boolean;
}

interface DirectionTraffic {
  passedBytes: number;
  droppedBytes: number;
  /** In the proxy right now: held, delayed, or waiting for a slow receiver. */
  waitingBytes: number;
}

export type Traffic = Readonly<Record<Direction, DirectionTraffic>>;

function transparent(): Rules {
  const passing = (): DirectionRules => ({ gate: "pass", cut: undefined });
  return { requests: passing(), replies: passing(), delayMs: 0, newConnectionsHang: false, refusing: false };
}

function noTraffic(): DirectionTraffic {
  return { passedBytes: 0, droppedBytes: 0, waitingBytes: 0 };
}

export class FaultProxy implements AsyncDisposable {
  readonly host = "127.0.0.1";
  readonly #rules: Rules = transparent();
  readonly #traffic: Traffic = { requests: noTraffic(), replies: noTraffic() };
  readonly #connections = new Set<Connection>();
  readonly #watchers = new Set<() => void>();
  #upstream: Address;
  #port = 0;
  /** Undefined while the port is closed: the system then refuses clients. */
  #listener: Server | undefined;
  #isOpenWanted = true;
  #settled: Promise<void> = Promise.resolve();
  #serverDown = false;
  #stopped = false;

  protected constructor(upstream: Address) {
    this.#upstream = upstream;
  }

  static async start({ upstream }: { readonly upstream: Address }): Promise<FaultProxy> {
    return await new FaultProxy(upstream).open();
  }

  /** Once, on a free port. */
  protected async open(): Promise<this> {
    this.#port = await takePort();
    await this.#openOrClose();
    return this;
  }

  /** Stays the same for the proxy's whole life. */
  get port(): number {
    return this.#port;
  }

  /** The URL of the server, with this proxy's host and port in place of the server's own. */
  urlOf(serverUrl: string): string {
    return throughHere(serverUrl, this);
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
  async serverUp(upstream: Address = this.#upstream): Promise<void> {
    this.#upstream = upstream;
    this.#serverDown = false;
    await this.#openOrClose();
  }

  /** Resolves when the condition holds, looked at when bytes move or connections change. */
  async until(condition: (traffic: Traffic) => boolean, timeoutMs = 30_000): Promise<void> {
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
    await this.#openOrClose();
    returnPort(this.#port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #setGate(direction: Direction, gate: DirectionRules["gate"]): void {
    this.#rules[direction].gate = gate;
    this.#pump();
  }

  #pump(): void {
    for (const connection of [...this.#connections]) connection.pump();
  }

  /** The last call counts, and is true when it resolves. */
  async #openOrClose(): Promise<void> {
    const { refusing, newConnectionsHang } = this.#rules;
    // In a partition no client is told that the server is gone.
    this.#isOpenWanted = !this.#stopped && !refusing && (newConnectionsHang || !this.#serverDown);
    if (!this.#isOpenWanted) this.#close();
    const open = (): Promise<void> => this.#open();
    this.#settled = this.#settled.then(open, open); // An earlier failure was that caller's to report.
    await this.#settled;
  }

  async #open(): Promise<void> {
    if (!this.#isOpenWanted || this.#listener !== undefined) return;
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
    await once(listener.listen({ port: this.#port, host: this.host, exclusive: true }), "listening");
    this.#listener = listener.unref();
    if (!this.#isOpenWanted) this.#close(); // Meanwhile.
  }

  #close(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  #accept(client: Socket): void {
    if (!this.#isOpenWanted) {
      reset(client);
      return;
    }
    const of: OfProxy = { rules: this.#rules, traffic: this.#traffic, onTraffic: () => this.#changed() };
    const connection = new Connection(client, of, () => this.#connections.delete(connection) && this.#changed());
    this.#connections.add(connection);
    if (!this.#rules.newConnectionsHang) connection.connect(this.#upstream);
    this.#changed();
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/** What a connection has of its proxy. */
interface OfProxy {
  readonly rules: Rules;
  readonly traffic: Traffic;
  readonly onTraffic: () => void;
}

/** One client's connection through the proxy: its two sockets, its two directions, and its end. */
class Connection {
  readonly client: Socket;
  readonly server = new Socket({ allowHalfOpen: true });
  readonly of: OfProxy;
  readonly #ways: readonly OneWay[];
  readonly #onClosed: () => void;
  #connected = false;

  constructor(client: Socket, of: OfProxy, onClosed: () => void) {
    this.client = client;
    this.of = of;
    this.#onClosed = onClosed;
    this.#ways = [new OneWay("requests", this), new OneWay("replies", this)];
    for (const socket of [client, this.server]) {
      socket.setNoDelay(true);
      socket.once("close", () => this.#closed());
    }
  }

  /** Opens the way to the server, once. */
  connect({ host, port }: Address): void {
    if (this.#connected) return;
    this.#connected = true;
    this.server.connect(port, host);
  }

  get lostBytes(): boolean {
    return this.#ways.some((way) => way.lost);
  }

  /** The rules have changed. */
  pump(): void {
    for (const way of this.#ways) way.pump();
  }

  /** Both sides see a reset, now; what was on its way is gone. */
  cut(): void {
    reset(this.client);
    reset(this.server);
  }

  /** Ends it after what was passed on has arrived: a reset could overtake the last request. */
  finish(): void {
    if (this.server.pending) this.server.destroy();
    else this.server.destroySoon();
    this.client.destroySoon();
  }

  #closed(): void {
    // A socket that was never connected does not close by itself.
    if (this.client.destroyed && !this.#connected) this.server.destroy();
    if (!this.client.destroyed || !this.server.destroyed) return;
    for (const way of this.#ways) way.close();
    this.#onClosed();
  }
}

// Above this the source is no longer read, so that its own sender feels the pressure.
const MOST_WAITING_BYTES = 1024 * 1024;

type Parcel = { readonly arrivedAt: number } & ({ readonly bytes: Buffer } | { readonly sign: "end" | "reset" });

/**
 * One direction: an ordered, bounded queue from one socket to the other. Bytes, end and reset leave in
 * the order they came, or not at all. The rules are asked whenever something is about to leave.
 */
class OneWay {
  /** Bytes were discarded, so nothing may follow: the receiver would see a gap. */
  lost = false;
  readonly #connection: Connection;
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #rules: Rules;
  readonly #direction: Direction;
  readonly #traffic: DirectionTraffic;
  #queue: Parcel[] = [];
  #waitingBytes = 0;
  /** Since the rule of cutting was set. */
  #passedBytes = 0;
  #cutBy: DirectionRules["cut"];
  #timer: NodeJS.Timeout | undefined;

  constructor(direction: Direction, connection: Connection) {
    const { client, server, of } = connection;
    const [source, sink] = direction === "requests" ? [client, server] : [server, client];
    this.#connection = connection;
    this.#source = source;
    this.#sink = sink;
    this.#rules = of.rules;
    this.#traffic = of.traffic[direction];
    this.#direction = direction;
    let failed = false;
    source.on("data", (bytes: Buffer) => this.#accept({ bytes, arrivedAt: performance.now() }));
    source.on("end", () => this.#accept({ sign: "end", arrivedAt: performance.now() }));
    // A failed source is passed on as a reset; the error itself is not ours to report.
    source.on("error", () => {
      failed = true;
    });
    source.on("close", () => failed && this.#accept({ sign: "reset", arrivedAt: performance.now() }));
    sink.on("drain", () => this.pump());
  }

  /** Lets out what may leave now; called again when rules, time or receiver change. */
  pump(): void {
    clearTimeout(this.#timer);
    const [source, sink] = [this.#source, this.#sink];
    for (let parcel = this.#queue[0]; parcel !== undefined; parcel = this.#queue[0]) {
      const gate = this.lost || sink.destroyed ? "drop" : this.#rules[this.#direction].gate;
      if (gate === "hold" || (gate === "pass" && !this.#mayLeave(parcel))) break;
      this.#queue.shift();
      if ("bytes" in parcel) this.#count(-parcel.bytes.length);
      if (gate === "pass") this.#deliver(parcel);
      else {
        this.lost ||= !sink.destroyed;
        if ("bytes" in parcel) this.#traffic.droppedBytes += parcel.bytes.length;
      }
    }
    if (this.#waitingBytes > MOST_WAITING_BYTES) source.pause();
    else if (source.isPaused()) source.resume();
    this.#connection.of.onTraffic();
  }

  /** Forgets what is waiting, when the connection is over. */
  close(): void {
    clearTimeout(this.#timer);
    this.#count(-this.#waitingBytes);
    this.#queue = [];
  }

  #accept(parcel: Parcel): void {
    this.#queue.push(parcel);
    if ("bytes" in parcel) this.#count(parcel.bytes.length);
    this.pump();
  }

  #count(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#traffic.waitingBytes += bytes;
  }

  #mayLeave(parcel: Parcel): boolean {
    const unconnected = this.#sink.pending && !this.#sink.connecting;
    if (unconnected || this.#sink.writableNeedDrain) return false;
    const remainingMs = parcel.arrivedAt + this.#rules.delayMs - performance.now();
    if (remainingMs <= 0) return true;
    this.#timer = setTimeout(() => this.pump(), Math.ceil(remainingMs));
    return false;
  }

  #deliver(parcel: Parcel): void {
    const sink = this.#sink;
    if ("sign" in parcel) {
      if (parcel.sign === "end") sink.end();
      else reset(sink);
      return;
    }
    if (sink.writableEnded) return;
    const { cut } = this.#rules[this.#direction];
    if (cut !== this.#cutBy) this.#passedBytes = 0;
    this.#cutBy = cut;
    const allowance = cut === undefined ? Number.POSITIVE_INFINITY : cut.afterBytes - this.#passedBytes;
    const bytes = parcel.bytes.length <= allowance ? parcel.bytes : parcel.bytes.subarray(0, allowance);
    this.#passedBytes += bytes.length;
    this.#traffic.passedBytes += bytes.length;
    if (bytes.length > 0) sink.write(bytes);
    if (parcel.bytes.length >= allowance) this.#connection.finish();
  }
}

/** Ends a socket the hard way (RST) if its state allows it, and in any case now. */
export function reset(socket: Socket): void {
  if (socket.destroyed) return;
  // While its end is on the way, the system refuses the reset, and Node then forgets the socket
  // without closing it: the process could never exit by itself.
  const ending = socket.writableEnded && !socket.writableFinished;
  if (socket.connecting || socket.pending || ending) socket.destroy();
  else socket.resetAndDestroy();
}
