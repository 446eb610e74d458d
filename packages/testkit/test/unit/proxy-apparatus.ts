// A server and clients to look at a proxy from both sides. They record what arrives and when a
// connection ends, and judge nothing.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { test as plain } from "vitest";
import { FaultProxy } from "../../src/proxy/fault-proxy.js";

/** One end of a connection. */
export class End {
  readonly socket: Socket;
  #chunks: Buffer[] = [];
  #receivedBytes = 0;
  #watchers = new Set<() => void>();
  /** How it ended: "end" if the other side ended it, or the error's code; undefined while open. */
  ending: string | undefined;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on("data", (bytes: Buffer) => {
      this.#chunks.push(bytes);
      this.#receivedBytes += bytes.length;
      this.#changed();
    });
    socket.on("end", () => this.#ended("end"));
    socket.on("error", (cause: NodeJS.ErrnoException) => this.#ended(cause.code ?? cause.message));
    socket.on("close", () => this.#ended("closed"));
  }

  get received(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  get text(): string {
    return this.received.toString();
  }

  send(data: string | Buffer): void {
    this.socket.write(data);
  }

  async until(condition: (end: End) => boolean, what = condition.toString()): Promise<void> {
    if (condition(this)) return;
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(
        () => reject(new Error(`still not true: ${what}; received ${this.text.slice(0, 100)}, ending ${this.ending}`)),
        5_000,
      );
      this.#watchers.add(() => {
        if (!condition(this)) return;
        clearTimeout(late);
        resolve();
      });
    });
  }

  async receives(text: string): Promise<void> {
    await this.until((end) => end.text === text, `received ${JSON.stringify(text)}`);
  }

  async ends(): Promise<string> {
    await this.until((end) => end.ending !== undefined, "the connection has ended");
    return this.ending ?? "";
  }

  #ended(how: string): void {
    this.ending ??= how;
    this.#changed();
  }

  #changed(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/** A server behind a proxy, and as many clients as a test opens. */
export class Stage implements AsyncDisposable {
  readonly proxy: FaultProxy;
  readonly #server: Server;
  /** The server's ends, in the order of the connections. */
  readonly served: End[] = [];
  readonly #clients: End[] = [];
  #onServed: () => void = () => {};

  private constructor(proxy: FaultProxy, server: Server) {
    this.proxy = proxy;
    this.#server = server;
    server.on("connection", (socket: Socket) => {
      this.served.push(new End(socket));
      this.#onServed();
    });
  }

  static async open(): Promise<Stage> {
    const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const proxy = await FaultProxy.start({ upstream: { host: "127.0.0.1", port: (server.address() as AddressInfo).port } });
    return new Stage(proxy, server);
  }

  /** A client's end; connected as far as it can tell. */
  async client(): Promise<End> {
    const socket = connect({ host: "127.0.0.1", port: this.proxy.port, allowHalfOpen: true, noDelay: true });
    const end = new End(socket);
    this.#clients.push(end);
    await new Promise((resolve) => socket.once("connect", resolve).once("error", resolve));
    return end;
  }

  /** A client and the server's end of the same connection. */
  async pair(): Promise<{ client: End; server: End }> {
    const before = this.served.length;
    const served = new Promise<void>((resolve) => {
      this.#onServed = resolve;
    });
    const client = await this.client();
    if (this.served.length === before) await served;
    return { client, server: this.served[before] as End };
  }

  /** The server goes, as a killed process would. */
  async killServer(): Promise<void> {
    for (const end of this.served) end.socket.resetAndDestroy();
    this.#server.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.proxy.stop();
    for (const end of [...this.#clients, ...this.served]) end.socket.destroy();
    this.#server.close();
  }
}

/** `stage`, and the two ends of a connection that is open before any fault. */
export const test = plain
  .extend("stage", async ({ task: _test }, { onCleanup }): Promise<Stage> => {
    const stage = await Stage.open();
    onCleanup(() => stage[Symbol.asyncDispose]());
    return stage;
  })
  .extend("pair", ({ stage }) => stage.pair())
  .extend("client", ({ pair }): End => pair.client)
  .extend("server", ({ pair }): End => pair.server);
