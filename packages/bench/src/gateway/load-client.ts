// Load on an HTTP server over many connections, each with one request at a time, and the time of
// each answer in microseconds. A program of its own. It speaks just enough HTTP/1.1 to take little
// processor time beside what it measures.
import { connect, type Socket } from "node:net";
import { answerParent } from "@palisade/testkit";
import type { Round } from "../measure/comparison.js";

/**
 * In path, header values and body {c} stands for the number of the connection, {i} for 0 to
 * `each` - 1 in turn, {r} for a random number below `among`, {n} for one that is never used again.
 */
export interface Requests {
  readonly method: "GET" | "PUT" | "PATCH" | "POST";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly each?: number;
  readonly among?: number;
  /** The statuses that every answer must have one of. */
  readonly expect: readonly number[];
}

export interface Ask {
  readonly url: string;
  readonly connections: number;
  readonly seconds: number;
  /** Of each connection, however long that takes. */
  readonly least?: number;
  readonly requests: Requests;
}

class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  /** Bytes of the answer, once its head has come. */
  #length = 0;
  #status = 0;
  #resolve: (status: number) => void = () => {};
  #reject: (error: Error) => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (bytes) => this.#receive(bytes));
    socket.on("close", () => this.#reject(new Error("the server closed a connection")));
    socket.on("error", (error) => this.#reject(error));
  }

  static open({ hostname, port }: URL): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => resolve(new Connection(socket)));
      socket.once("error", reject);
    });
  }

  /** The status of the answer. */
  send(request: Buffer): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#socket.write(request);
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    if (this.#length === 0 && !this.#readHead()) return;
    if (this.#received.length < this.#length) return;
    this.#received = Buffer.alloc(0);
    this.#length = 0;
    this.#resolve(this.#status);
  }

  #readHead(): boolean {
    const end = this.#received.indexOf("\r\n\r\n");
    if (end < 0) return false;
    const head = this.#received.toString("latin1", 0, end);
    this.#status = Number(head.slice(9, 12));
    const length = /\r\ncontent-length: *(\d+)/i.exec(head);
    if (length === null && this.#status !== 204 && this.#status !== 304) this.#reject(new Error(`an answer without a length: ${head}`));
    this.#length = end + 4 + Number(length?.[1] ?? 0);
    return true;
  }
}

let used = 0;

/** The bytes of each request of a connection. */
function requestsOf({ method, path, headers = {}, body = "", each = 1, among = 1 }: Requests, connection: number): () => Buffer {
  const text = (i: number): Buffer => {
    const filled = (template: string): string =>
      template.replace(/\{([cirn])\}/g, (_, kind: string) => {
        if (kind === "c") return String(connection);
        if (kind === "i") return String(i);
        if (kind === "r") return String(Math.floor(Math.random() * among));
        used += 1;
        return `${process.pid}-${used}`;
      });
    const content = filled(body);
    const fields = Object.entries(headers).map(([name, value]) => `${name}: ${filled(value)}\r\n`);
    const length = method === "GET" ? "" : `content-length: ${Buffer.byteLength(content)}\r\n`;
    return Buffer.from(`${method} ${filled(path)} HTTP/1.1\r\nhost: localhost\r\n${fields.join("")}${length}\r\n${content}`);
  };
  const isFixed = !/\{[rn]\}/.test(`${path}${body}${Object.values(headers).join()}`);
  const fixed = isFixed ? Array.from({ length: each }, (_, i) => text(i)) : [];
  let next = 0;
  return () => {
    const i = next++ % each;
    return fixed[i] ?? text(i);
  };
}

async function load({ url, connections, seconds, least = 1, requests }: Ask): Promise<Round> {
  const opened = await Promise.all(Array.from({ length: connections }, () => Connection.open(new URL(url))));
  const latenciesUs: number[] = [];
  const startedAt = performance.now();
  const until = startedAt + seconds * 1_000;
  try {
    await Promise.all(
      opened.map(async (connection, place) => {
        const next = requestsOf(requests, place);
        for (let [at, sent] = [performance.now(), 0]; at < until || sent < least; sent += 1) {
          const status = await connection.send(next());
          if (!requests.expect.includes(status)) throw new Error(`${requests.method} ${requests.path}: status ${status}`);
          const endedAt = performance.now();
          latenciesUs.push(Math.round((endedAt - at) * 10_000) / 10);
          at = endedAt;
        }
      }),
    );
  } finally {
    for (const connection of opened) connection.close();
  }
  return { operations: latenciesUs.length, seconds: (performance.now() - startedAt) / 1_000, latenciesUs };
}

answerParent<Ask>(load);
