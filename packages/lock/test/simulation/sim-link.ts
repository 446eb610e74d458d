// The client's end of connections to one server, with the behaviour of ioredis as the lock
// configures it: no queue without a connection, no resending, reconnection after a growing delay,
// `close` before what was under way rejects.
import type { EncodedCall } from "#lock/redis/calls.js";
import { type ConnectSettings, type Link, retryDelayMs } from "#lock/redis/connection.js";
import type { Reply } from "./commands.js";
import { Connection, type Path, type Request } from "./network.js";

interface PendingReply {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (error: Error) => void;
}

type Listener = (...args: never[]) => void;

export class SimLink implements Link {
  readonly #path: Path;
  readonly #settings: ConnectSettings;
  readonly #listeners = new Map<string, Listener[]>();
  #connection: Connection | undefined;
  #pending: PendingReply[] = [];
  #answered = 0;
  #isClosed = false;
  #dials = 0;
  #attempts = 0;
  #first: PendingReply | undefined;

  constructor(path: Path, settings: ConnectSettings) {
    this.#path = path;
    this.#settings = settings;
  }

  on(event: string, listener: Listener): this {
    const there = this.#listeners.get(event);
    if (there === undefined) this.#listeners.set(event, [listener]);
    else there.push(listener);
    return this;
  }

  connect(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#first = { resolve, reject };
      this.#dial();
    });
  }

  send(sha: string, { script, keyCount, words }: EncodedCall, lastWord: string | undefined): Promise<unknown> {
    const { server } = this.#path.machine;
    const text = lastWord === undefined ? words : [...words, lastWord];
    return this.#send({ name: script, isScript: true, execute: () => server.evalsha(sha, keyCount, text) });
  }

  eval(source: string, keyCount: number, ...text: string[]): Promise<unknown> {
    const { server } = this.#path.machine;
    return this.#send({ name: "eval", isScript: true, execute: () => server.eval(source, keyCount, text) });
  }

  call(command: string, ...args: string[]): Promise<unknown> {
    const { server } = this.#path.machine;
    return this.#send({
      name: command,
      isScript: false,
      execute: (peer) => server.call(peer, command, args),
    });
  }

  subscribe(channel: string): Promise<unknown> {
    const { server } = this.#path.machine;
    return this.#send({
      name: "subscribe",
      isScript: false,
      execute: (peer) => server.subscribe(peer, [channel]),
    });
  }

  breakOff(): void {
    const connection = this.#connection;
    if (connection === undefined) {
      // A connection is being made: it is given up.
      this.#dials++;
      this.#path.client.soon(() => this.#failed("ECONNABORTED", this.#dials));
      return;
    }
    connection.reset();
    this.#path.client.soon(() => this.#lost(connection));
  }

  disconnect(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#dials++;
    const connection = this.#connection;
    connection?.finish();
    this.#path.client.soon(() => this.#lost(connection));
  }

  /** The process died: its connections are reset. */
  abandon(): void {
    this.#isClosed = true;
    this.#dials++;
    this.#connection?.reset();
    this.#connection = undefined;
  }

  #send(request: Request): Promise<unknown> {
    const connection = this.#connection;
    if (connection === undefined || this.#isClosed) return Promise.reject(notWriteable());
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      connection.send(request);
    });
  }

  #dial(): void {
    const { timeline, machine, there, back, client } = this.#path;
    const dial = ++this.#dials;
    const { connectTimeoutMs, clock } = this.#settings;
    const timer = clock.setBackgroundTimer(connectTimeoutMs, () => this.#failed("ETIMEDOUT", dial));
    const answer = (run: () => void, given?: Connection): void => {
      timeline.after(back.delayMs(), () => {
        if (back.isHeld) given?.reset();
        else
          client.arrive(() => {
            if (dial !== this.#dials) {
              given?.reset();
              return;
            }
            clock.clearTimer(timer);
            run();
          });
      });
    };
    timeline.after(there.delayMs(), () => {
      // A lost SYN is repeated much later than any connect timeout here.
      if (there.isHeld || dial !== this.#dials) return;
      if (!machine.accepts) {
        answer(() => this.#failed("ECONNREFUSED", dial));
        return;
      }
      const end = this.#end();
      const connection = machine.server.welcome((id) => new Connection(this.#path, id, end)) as Connection;
      end.connection = connection;
      answer(() => this.#connected(connection), connection);
    });
  }

  /** The client's end of one connection. Input on an earlier connection is ignored. */
  #end(): { connection: Connection | undefined } & ConstructorParameters<typeof Connection>[2] {
    const end = {
      connection: undefined as Connection | undefined,
      replied: (reply: Reply | Error): void => {
        if (end.connection === this.#connection) this.#replied(reply);
      },
      news: (text: string): void => {
        if (end.connection === this.#connection) this.#emit("message", text);
      },
      lost: (): void => {
        this.#lost(end.connection);
      },
    };
    return end;
  }

  #connected(connection: Connection): void {
    if (this.#isClosed) {
      connection.reset();
      return;
    }
    this.#connection = connection;
    this.#attempts = 0;
    this.#emit("connect");
    this.#emit("ready");
    this.#first?.resolve("OK");
    this.#first = undefined;
  }

  #replied(reply: Reply | Error): void {
    const pending = this.#pending[this.#answered++];
    if (this.#answered > 64 && this.#answered * 2 > this.#pending.length) {
      this.#pending = this.#pending.slice(this.#answered);
      this.#answered = 0;
    }
    if (reply instanceof Error) pending?.reject(reply);
    else pending?.resolve(reply);
  }

  #failed(code: string, dial: number): void {
    if (dial !== this.#dials || this.#isClosed) return;
    this.#dials++;
    const error = Object.assign(new Error(`connect ${code}`), { code });
    this.#emit("error", error);
    this.#emit("close");
    this.#first?.reject(error);
    this.#first = undefined;
    this.#dialLater();
  }

  #lost(connection: Connection | undefined): void {
    if (connection !== this.#connection) return;
    const pending = this.#pending.slice(this.#answered);
    this.#connection = undefined;
    this.#pending = [];
    this.#answered = 0;
    this.#emit("close");
    for (const { reject } of pending) reject(connectionLost());
    if (this.#isClosed) this.#first?.reject(connectionLost());
    else this.#dialLater();
  }

  #dialLater(): void {
    const { clock } = this.#settings;
    clock.setTimer(retryDelayMs(++this.#attempts, clock), () => {
      if (!this.#isClosed) this.#dial();
    });
  }

  #emit(event: string, ...args: unknown[]): void {
    for (const listener of this.#listeners.get(event) ?? []) listener(...(args as never[]));
  }
}

function notWriteable(): Error {
  return new Error("Stream isn't writeable and enableOfflineQueue options is false");
}

function connectionLost(): Error {
  return new Error("Connection is closed.");
}
