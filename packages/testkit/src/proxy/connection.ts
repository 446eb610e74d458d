// One client's connection through the proxy: its two sockets, its two directions, and its end. What
// is done to traffic now is plain data, which all connections of a proxy share.
import { Socket } from "node:net";

/** Requests flow from the client to the server, replies the other way. */
export type Direction = "requests" | "replies";

/** pass on · discard in silence · keep, in order, until told to deliver */
export type Gate = "pass" | "drop" | "hold";

/** Each connection, old or new, ends after this many more bytes in this direction. */
export interface CutRule {
  readonly afterBytes: number;
}

interface DirectionRules {
  gate: Gate;
  cut: CutRule | undefined;
}

export interface Rules {
  readonly requests: DirectionRules;
  readonly replies: DirectionRules;
  /** Every chunk waits this long in the proxy, in both directions. */
  delayMs: number;
  /** New connections get no way to the server, and no answer. */
  newConnectionsHang: boolean;
  /** New connections are refused by the operating system. */
  refusing: boolean;
}

export interface DirectionTraffic {
  passedBytes: number;
  droppedBytes: number;
  /** In the proxy right now: held, delayed, or waiting for a slow receiver. */
  waitingBytes: number;
}

export interface Traffic {
  readonly requests: DirectionTraffic;
  readonly replies: DirectionTraffic;
}

export function transparent(): Rules {
  return {
    requests: { gate: "pass", cut: undefined },
    replies: { gate: "pass", cut: undefined },
    delayMs: 0,
    newConnectionsHang: false,
    refusing: false,
  };
}

export function noTraffic(): Traffic {
  return {
    requests: { passedBytes: 0, droppedBytes: 0, waitingBytes: 0 },
    replies: { passedBytes: 0, droppedBytes: 0, waitingBytes: 0 },
  };
}

// Above this the source is no longer read, so that its own sender feels the pressure.
const MOST_WAITING_BYTES = 1024 * 1024;

type Parcel = { readonly arrivedAt: number } & ({ readonly bytes: Buffer } | { readonly sign: "end" | "reset" });

interface OneWayOptions {
  readonly source: Socket;
  readonly sink: Socket;
  /** Asked anew for every parcel. */
  readonly gate: () => Gate;
  readonly delayMs: () => number;
  /** How many more bytes may pass before the connection ends; undefined for no limit. */
  readonly budget: () => number | undefined;
  readonly traffic: DirectionTraffic;
  readonly onTraffic: () => void;
  readonly onBudgetSpent: () => void;
}

/**
 * One direction: an ordered, bounded queue from one socket to the other. Bytes, end and reset leave in
 * the order they came, or not at all. The rules are asked whenever something is about to leave.
 */
class OneWay {
  readonly #options: OneWayOptions;
  #queue: Parcel[] = [];
  #waitingBytes = 0;
  #passedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #lost = false;

  constructor(options: OneWayOptions) {
    this.#options = options;
    const { source, sink } = options;
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

  /** Bytes were discarded, so nothing may follow: the receiver would see a gap. */
  get lost(): boolean {
    return this.#lost;
  }

  get passedBytes(): number {
    return this.#passedBytes;
  }

  /** Lets out what may leave now; called again when rules, time or receiver change. */
  pump(): void {
    clearTimeout(this.#timer);
    const { sink, traffic } = this.#options;
    for (let parcel = this.#queue[0]; parcel !== undefined; parcel = this.#queue[0]) {
      const gate = this.#lost || sink.destroyed ? "drop" : this.#options.gate();
      if (gate === "hold" || (gate === "pass" && !this.#mayLeave(parcel))) break;
      this.#queue.shift();
      if ("bytes" in parcel) {
        this.#waitingBytes -= parcel.bytes.length;
        traffic.waitingBytes -= parcel.bytes.length;
      }
      if (gate === "drop") this.#discard(parcel);
      else this.#deliver(parcel);
    }
    this.#breathe();
    this.#options.onTraffic();
  }

  /** Forgets what is waiting, when the connection is over. */
  close(): void {
    clearTimeout(this.#timer);
    this.#options.traffic.waitingBytes -= this.#waitingBytes;
    this.#waitingBytes = 0;
    this.#queue = [];
  }

  #accept(parcel: Parcel): void {
    this.#queue.push(parcel);
    if ("bytes" in parcel) {
      this.#waitingBytes += parcel.bytes.length;
      this.#options.traffic.waitingBytes += parcel.bytes.length;
    }
    this.pump();
  }

  #mayLeave(parcel: Parcel): boolean {
    const { sink } = this.#options;
    const unconnected = sink.pending && !sink.connecting;
    if (unconnected || sink.writableNeedDrain) return false;
    const remainingMs = parcel.arrivedAt + this.#options.delayMs() - performance.now();
    if (remainingMs <= 0) return true;
    this.#timer = setTimeout(() => this.pump(), Math.ceil(remainingMs));
    return false;
  }

  #discard(parcel: Parcel): void {
    if (!this.#options.sink.destroyed) this.#lost = true;
    if ("bytes" in parcel) this.#options.traffic.droppedBytes += parcel.bytes.length;
  }

  #deliver(parcel: Parcel): void {
    const { sink, traffic, budget, onBudgetSpent } = this.#options;
    if ("sign" in parcel) {
      if (parcel.sign === "end") sink.end();
      else reset(sink);
      return;
    }
    if (sink.writableEnded) return;
    const allowance = budget() ?? Number.POSITIVE_INFINITY;
    const bytes = parcel.bytes.length <= allowance ? parcel.bytes : parcel.bytes.subarray(0, allowance);
    this.#passedBytes += bytes.length;
    traffic.passedBytes += bytes.length;
    if (bytes.length > 0) sink.write(bytes);
    if (parcel.bytes.length >= allowance) onBudgetSpent();
  }

  #breathe(): void {
    const { source } = this.#options;
    if (this.#waitingBytes > MOST_WAITING_BYTES) source.pause();
    else if (source.isPaused()) source.resume();
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

export interface Upstream {
  readonly host: string;
  readonly port: number;
}

interface ConnectionOptions {
  readonly client: Socket;
  readonly rules: Rules;
  readonly traffic: Traffic;
  readonly onTraffic: () => void;
  readonly onClosed: (connection: Connection) => void;
}

export class Connection {
  readonly #client: Socket;
  readonly #server = new Socket({ allowHalfOpen: true });
  readonly #requests: OneWay;
  readonly #replies: OneWay;
  readonly #options: ConnectionOptions;
  #connected = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#requests = this.#direction("requests");
    this.#replies = this.#direction("replies");
    for (const socket of [this.#client, this.#server]) {
      socket.setNoDelay(true);
      socket.once("close", () => this.#closed());
    }
  }

  /** Opens the way to the server, once. */
  connect(upstream: Upstream): void {
    if (this.#connected) return;
    this.#connected = true;
    this.#server.connect(upstream.port, upstream.host);
  }

  get lostBytes(): boolean {
    return this.#requests.lost || this.#replies.lost;
  }

  /** The rules have changed. */
  pump(): void {
    this.#requests.pump();
    this.#replies.pump();
  }

  /** Both sides see a reset, now; what was on its way is gone. */
  cut(): void {
    reset(this.#client);
    reset(this.#server);
  }

  /** Ends it after what was passed on has arrived: a reset could overtake the last request. */
  finish(): void {
    if (this.#server.pending) this.#server.destroy();
    else this.#server.destroySoon();
    this.#client.destroySoon();
  }

  #direction(name: Direction): OneWay {
    const { rules, traffic, onTraffic } = this.#options;
    const [source, sink] = name === "requests" ? [this.#client, this.#server] : [this.#server, this.#client];
    let rule: CutRule | undefined;
    let passedBefore = 0;
    const way: OneWay = new OneWay({
      source,
      sink,
      gate: () => rules[name].gate,
      delayMs: () => rules.delayMs,
      budget: () => {
        if (rule !== rules[name].cut) {
          rule = rules[name].cut;
          passedBefore = way.passedBytes;
        }
        return rule && rule.afterBytes - (way.passedBytes - passedBefore);
      },
      traffic: traffic[name],
      onTraffic,
      onBudgetSpent: () => this.finish(),
    });
    return way;
  }

  #closed(): void {
    // A socket that was never connected does not close by itself.
    if (this.#client.destroyed && !this.#connected) this.#server.destroy();
    if (!this.#client.destroyed || !this.#server.destroyed) return;
    this.#requests.close();
    this.#replies.close();
    this.#options.onClosed(this);
  }
}
