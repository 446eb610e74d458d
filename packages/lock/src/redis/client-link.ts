// A link over an ioredis client, which finds and greets the server. From then on its socket is
// written and read here, in RESP2: ioredis makes an object, several promises and a trace of each
// command (docs/adr/0091).
import type { Redis } from "ioredis";
import { type Client, isCluster } from "../options/node-source.js";
import { bulkString, type EncodedCall } from "./batch.js";
import type { Link } from "./link.js";

type Stream = Redis["stream"];

export class ClientLink implements Link {
  readonly isCluster: boolean;
  // Beside the client, not in it: an ioredis instance that is given more members becomes several
  // times as slow.
  readonly #client: Client;
  #socket: LinkSocket | undefined;
  #onMessage: MessageListener = () => {};

  constructor(client: Client) {
    this.#client = client;
    this.isCluster = isCluster(client);
    client.on("ready", () => {
      this.#socket = isCluster(client) || !isIdle(client) ? undefined : new LinkSocket(client.stream, this.#onMessage);
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

  send(sha: string, call: EncodedCall, record: string | undefined): Promise<unknown> {
    if (this.#socket !== undefined) return this.#socket.send(sha, call, record);
    return this.#client.evalsha(sha, call.keyCount, ...call.words, ...(record === undefined ? [] : [record]));
  }

  eval(source: string, keyCount: number, ...text: string[]): Promise<unknown> {
    return this.#socket?.command("EVAL", source, String(keyCount), ...text) ?? this.#client.eval(source, keyCount, ...text);
  }

  call(command: string, ...args: string[]): Promise<unknown> {
    return this.#socket?.command(command, ...args) ?? this.#client.call(command, ...args);
  }

  subscribe(...channels: string[]): Promise<unknown> {
    return this.#socket?.subscribe(...channels) ?? this.#client.subscribe(...channels);
  }

  unsubscribe(...channels: string[]): Promise<unknown> {
    return this.#socket?.unsubscribe(...channels) ?? this.#client.unsubscribe(...channels);
  }

  breakOff(): void {
    if (isCluster(this.#client)) this.#client.disconnect(true);
    else discard(this.#client.stream);
  }

  disconnect(): void {
    this.#client.disconnect();
  }
}

/**
 * Versions before 6 are ready before the replies to their own first commands are there: these stay
 * theirs, and everything is asked through them.
 */
function isIdle(client: Redis): boolean {
  return client.commandQueue.length === 0;
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
  /** How many replies there will be: one for each channel that is joined or left. */
  replies: number;
}

/** Known to causes.ts, as what ioredis says then. */
const CLOSED = "Connection is closed.";

type MessageListener = (channel: string, message: string) => void;

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
  send(sha: string, { words, keyCount, wire }: EncodedCall, record: string | undefined): Promise<unknown> {
    const last = record === undefined ? "" : bulkString(record);
    const size = words.length + (last === "" ? 3 : 4);
    const head = `*${size}\r\n$7\r\nEVALSHA\r\n${bulkString(sha)}${bulkString(String(keyCount))}`;
    return this.#write(typeof wire === "string" ? head + wire + last : Buffer.concat([Buffer.from(head), wire, Buffer.from(last)]), 1);
  }

  command(...words: string[]): Promise<unknown> {
    return this.#write(encoded(words), 1);
  }

  subscribe(...channels: string[]): Promise<unknown> {
    this.#hasSubscribed = true;
    return this.#write(encoded(["SUBSCRIBE", ...channels]), channels.length);
  }

  unsubscribe(...channels: string[]): Promise<unknown> {
    return this.#write(encoded(["UNSUBSCRIBE", ...channels]), channels.length);
  }

  /** The connection is gone: what was on its way has an unknown outcome. */
  lost(): void {
    for (const { reject } of this.#pending.splice(0)) reject(new Error(CLOSED));
  }

  #write(text: string | Buffer, replies: number): Promise<unknown> {
    if (!this.#stream.writable) return Promise.reject(new Error(CLOSED));
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject, replies });
      this.#stream.write(text);
    });
  }

  #replied(reply: unknown): void {
    if (this.#hasSubscribed && Array.isArray(reply) && reply[0] === "message") {
      this.#onMessage(reply[1], reply[2]);
      return;
    }
    const pending = this.#pending[0];
    if (pending === undefined) throw new ProtocolError("a reply that was not asked for");
    // Of several channels that are joined one error refuses all.
    if (reply instanceof Error) pending.reject(reply);
    else if (pending.replies-- > 1) return;
    else pending.resolve(reply);
    this.#pending.shift();
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
