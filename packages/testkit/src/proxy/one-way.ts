// One direction of one connection: an ordered, bounded queue from one socket to the other. Bytes,
// end and reset leave in the order they came, or not at all. The rules are asked whenever something
// is about to leave.
import type { Socket } from "node:net";
import type { DirectionTraffic, Gate } from "./rules.js";

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

export class OneWay {
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
