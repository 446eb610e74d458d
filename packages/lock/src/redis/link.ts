// The link of a connection, over the network: ioredis finds and greets the server, and connects
// again; from then on its socket is written and read here, in RESP2: ioredis makes an object, several
// promises and a trace of each command (docs/decisions/0006). The simulation has links of its own.
import { Redis } from "ioredis";
import type { ServerSource } from "../protocol/node.js";
import { bulkString, type EncodedCall } from "./calls.js";
import { type ConnectSettings, type Link, retryDelayMs } from "./connection.js";

const KEEP_ALIVE_MS = 10_000;
const HALF_CLOSE_MS = 100;

/** Which options of ioredis, and why each. */
function options({ connectTimeoutMs, connectionName, clock }: ConnectSettings) {
  return {
    // Our listeners are attached first.
    lazyConnect: true,
    // Flat replies are enough, and HELLO is one more command that an ACL would have to allow.
    protocol: 2,
    replyMapping: "legacy",
    stringNumbers: false,
    // A grant that waits in a queue and is executed after a reconnect would lock the resource for a
    // whole ttl without a holder.
    enableOfflineQueue: false,
    // The same, for a grant that was on its way when the connection was lost.
    autoResendUnfulfilledCommands: false,
    // Fail what was on its way with the connection, not some reconnects later.
    maxRetriesPerRequest: 0,
    // Would turn a READONLY reply into a reconnect in the middle of other requests.
    reconnectOnError: null,
    connectTimeout: connectTimeoutMs,
    // The pipeline has one timer for all requests. A timeout must leave the connection open: a
    // release sent later has to stay behind the grant.
    commandTimeout: undefined,
    socketTimeout: undefined,
    // The first request on every connection is the node's status, which fails with LOADING if it is
    // loading.
    enableReadyCheck: false,
    retryStrategy: (times: number) => retryDelayMs(times, clock),
    // How long a connection that is being closed may stay half-open.
    disconnectTimeout: HALF_CLOSE_MS,
    keepAlive: KEEP_ALIVE_MS,
    noDelay: true,
    connectionName,
    // Two more commands per connection.
    disableClientInfo: true,
    autoResubscribe: false,
    enableAutoPipelining: false,
    readOnly: false,
    monitor: false,
    // Key names carry their namespace already, and channels are not prefixed.
    keyPrefix: "",
  } as const;
}

/** A link to the source, not connected yet. */
export function openLink(source: ServerSource, settings: ConnectSettings): Link {
  return new ClientLink(openClient(source, settings));
}

export function openClient(source: ServerSource, settings: ConnectSettings): Redis {
  const ours = options(settings);
  // Ours first: of options that are given twice, also by a URL, ioredis takes the first.
  if (typeof source === "string") return Reflect.construct(Redis, [ours, source]) as Redis;
  return new Redis({ ...source, ...ours });
}

type Stream = Redis["stream"];

export class ClientLink implements Link {
  // Beside the client, not in it: an ioredis instance that is given more members becomes several
  // times as slow.
  readonly #client: Redis;
  #socket: LinkSocket | undefined;
  #onMessage: MessageListener = () => {};

  constructor(client: Redis) {
    this.#client = client;
    client.on("ready", () => {
      this.#socket = new LinkSocket(client.stream, this.#onMessage);
    });
    client.on("close", () => {
      const socket = this.#socket;
      this.#socket = undefined;
      socket?.lost();
    });
  }

  on(event: string, told: (...args: never[]) => void): void {
    this.#client.on(event, told as (...args: unknown[]) => void);
    if (event === "message") this.#onMessage = told as MessageListener;
  }

  connect(): Promise<unknown> {
    return this.#client.connect();
  }

  send(sha: string, call: EncodedCall, lastWord: string | undefined): Promise<unknown> {
    return this.#socket?.send(sha, call, lastWord) ?? closed();
  }

  eval(source: string, keyCount: number, ...text: string[]): Promise<unknown> {
    return this.#socket?.command("EVAL", source, String(keyCount), ...text) ?? closed();
  }

  call(command: string, ...args: string[]): Promise<unknown> {
    return this.#socket?.command(command, ...args) ?? closed();
  }

  subscribe(channel: string): Promise<unknown> {
    return this.#socket?.subscribe(channel) ?? closed();
  }

  breakOff(): void {
    discard(this.#client.stream);
  }

  disconnect(): void {
    this.#client.disconnect();
  }
}

function closed(): Promise<never> {
  return Promise.reject(new Error(CLOSED));
}

/** With a reset, where the socket allows it, so that the kernel stops delivering an old grant. */
function discard(stream: Stream): void {
  // A socket whose end is on the way cannot be reset; Node would leave it open, and the process
  // could not exit by itself.
  const isEnding = stream.writableEnded && !stream.writableFinished;
  if ("encrypted" in stream || stream.connecting || stream.pending || isEnding) stream.destroy();
  else stream.resetAndDestroy();
}

interface Pending {
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Known to connection.ts, as what ioredis says then. */
const CLOSED = "Connection is closed.";

type MessageListener = (message: string) => void;

export class LinkSocket {
  readonly #stream: Stream;
  readonly #onMessage: MessageListener;
  readonly #pending: Pending[] = [];
  #hasSubscribed = false;

  /** `stream` must not wait for replies of its own. */
  constructor(stream: Stream, onMessage: MessageListener) {
    this.#stream = stream;
    this.#onMessage = onMessage;
    const reader = new ReplyReader((reply) => this.#replied(reply));
    stream.removeAllListeners("data");
    stream.on("data", (bytes: Buffer) => {
      try {
        reader.read(bytes);
      } catch (error) {
        stream.removeAllListeners("data");
        // ioredis tells it as an error, and that the connection is closed.
        stream.destroy(error as Error);
      }
    });
  }

  /** EVALSHA of a call that was encoded once for all nodes. */
  send(sha: string, { words, keyCount, wire }: EncodedCall, lastWord: string | undefined): Promise<unknown> {
    const last = lastWord === undefined ? "" : bulkString(lastWord);
    const size = words.length + (last === "" ? 3 : 4);
    const head = `*${size}\r\n$7\r\nEVALSHA\r\n${bulkString(sha)}${bulkString(String(keyCount))}`;
    return this.#write(typeof wire === "string" ? head + wire + last : Buffer.concat([Buffer.from(head), wire, Buffer.from(last)]));
  }

  command(...words: string[]): Promise<unknown> {
    return this.#write(encoded(words));
  }

  subscribe(channel: string): Promise<unknown> {
    this.#hasSubscribed = true;
    return this.#write(encoded(["SUBSCRIBE", channel]));
  }

  /** The connection is gone: what was on its way has an unknown outcome. */
  lost(): void {
    for (const { reject } of this.#pending.splice(0)) reject(new Error(CLOSED));
  }

  #write(text: string | Buffer): Promise<unknown> {
    if (!this.#stream.writable) return Promise.reject(new Error(CLOSED));
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.#stream.write(text);
    });
  }

  #replied(reply: unknown): void {
    if (this.#hasSubscribed && Array.isArray(reply) && reply[0] === "message") {
      this.#onMessage(reply[2]);
      return;
    }
    const pending = this.#pending.shift();
    if (pending === undefined) throw new ProtocolError("a reply that was not asked for");
    if (reply instanceof Error) pending.reject(reply);
    else pending.resolve(reply);
  }
}

function encoded(words: readonly string[]): string {
  return `*${words.length}\r\n${words.map(bulkString).join("")}`;
}

/** The server sent something that is no reply. */
export class ProtocolError extends Error {
  constructor(what: string) {
    super(`Protocol error: ${what}`);
  }
}

const INCOMPLETE = Symbol("incomplete");
const NOTHING = Buffer.alloc(0);
const [PLUS, MINUS, COLON, DOLLAR, STAR, CR, LF, ZERO] = Buffer.from("+-:$*\r\n0") as unknown as readonly number[];
const CRLF = "\r\n";

export class ReplyReader {
  readonly #told: (reply: unknown) => void;
  /** What has not been read yet, from `#at` on. */
  #bytes: Buffer = NOTHING;
  #at = 0;
  #hasBegun = false;

  /** `told` is called with each whole reply; an error of the server is an Error. Must not throw. */
  constructor(told: (reply: unknown) => void) {
    this.#told = told;
  }

  /** Throws a ProtocolError where the server says something else; then nothing more can be read. */
  read(bytes: Buffer): void {
    this.#bytes = this.#at < this.#bytes.length ? Buffer.concat([this.#bytes.subarray(this.#at), bytes]) : bytes;
    this.#at = 0;
    // ioredis takes the reply before these for complete at its CR.
    if (!this.#hasBegun && bytes[0] === LF) this.#at = 1;
    this.#hasBegun = true;
    while (this.#at < this.#bytes.length) {
      const start = this.#at;
      const reply = this.#reply();
      if (reply === INCOMPLETE) {
        this.#at = start;
        return;
      }
      this.#told(reply);
    }
  }

  #reply(): unknown {
    const type = this.#bytes[this.#at++];
    switch (type) {
      case COLON:
        return this.#number();
      case DOLLAR:
        return this.#string();
      case STAR:
        return this.#array();
      case PLUS:
        return this.#line();
      case MINUS: {
        const text = this.#line();
        return text === INCOMPLETE ? text : new Error(text);
      }
      default:
        throw new ProtocolError(`a reply does not begin with byte ${type}`);
    }
  }

  #number(): number | typeof INCOMPLETE {
    const bytes = this.#bytes;
    const isNegative = bytes[this.#at] === MINUS;
    if (isNegative) this.#at++;
    let number = 0;
    for (let at = this.#at; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (byte === CR) {
        if (at + 1 === bytes.length) return INCOMPLETE;
        if (at === this.#at || bytes[at + 1] !== LF) break;
        this.#at = at + 2;
        return isNegative ? -number : number;
      }
      const digit = byte - (ZERO as number);
      if (digit < 0 || digit > 9) break;
      number = number * 10 + digit;
      if (at === bytes.length - 1) return INCOMPLETE;
    }
    if (this.#at === bytes.length) return INCOMPLETE;
    throw new ProtocolError("a number has other characters than digits");
  }

  #line(): string | typeof INCOMPLETE {
    const end = this.#bytes.indexOf(CRLF, this.#at, "latin1");
    if (end < 0) return INCOMPLETE;
    const text = this.#bytes.toString("utf8", this.#at, end);
    this.#at = end + 2;
    return text;
  }

  #string(): string | null | typeof INCOMPLETE {
    const size = this.#number();
    if (size === INCOMPLETE) return size;
    if (size < 0) return null;
    const end = this.#at + size;
    if (this.#bytes.length < end + 2) return INCOMPLETE;
    const text = this.#bytes.toString("utf8", this.#at, end);
    this.#at = end + 2;
    return text;
  }

  #array(): unknown[] | null | typeof INCOMPLETE {
    const size = this.#number();
    if (size === INCOMPLETE) return size;
    if (size < 0) return null;
    const items: unknown[] = [];
    while (items.length < size) {
      if (this.#at === this.#bytes.length) return INCOMPLETE;
      const item = this.#reply();
      if (item === INCOMPLETE) return item;
      items.push(item);
    }
    return items;
  }
}
