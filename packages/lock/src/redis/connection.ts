// One connection to one master through its states: connecting, first requests (status and scripts),
// up, lost, again after a growing delay. Knows whether the node can be asked and, if not, why. No
// request is retried here: what was on its way when the connection was lost has an unknown outcome,
// and only the caller knows what that means. At the end: what a failure of a connection is called in
// a ballot.
import { createHash } from "node:crypto";
import type { Clock, Timer } from "../platform/clock.js";
import type { ServerSource } from "../protocol/node.js";
import { type AnyVerb, type Keys, verbs } from "../protocol/verbs.js";
import type { EncodedCall, ScriptCall } from "./calls.js";
import { scripts } from "./lua.generated.js";
import { type NodeStatus, paddedRunId, status } from "./record.js";

export interface ConnectSettings {
  readonly connectTimeoutMs: number;
  /** Shown by CLIENT LIST. */
  readonly connectionName: string;
  readonly clock: Clock;
}

/**
 * A connection that is made again whenever it is lost, until it is disconnected. What was on its
 * way when it was lost rejects, and is never sent again; while there is no connection, everything
 * rejects. Calls are executed in the order in which they were made.
 */
export interface Link {
  /** The server accepted the connection; it can be asked; the connection is gone, or was not made. */
  on(event: "connect" | "ready" | "close", told: () => void): unknown;
  /** Why; `close` follows. */
  on(event: "error", told: (error: unknown) => void): unknown;
  /** Something was published on the channel that was joined. */
  on(event: "message", told: (message: string) => void): unknown;
  /** Begins. Rejects if the first connection is not made. */
  connect(): Promise<unknown>;
  /** Executes a script that the server knows, with one word more behind those of the call, if given. */
  send(sha: string, call: EncodedCall, lastWord: string | undefined): Promise<unknown>;
  eval(source: string, keyCount: number, ...text: string[]): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  /** Ends the present connection; a new one is made. What was not sent yet never arrives. */
  breakOff(): void;
  /** For good. */
  disconnect(): void;
}

export type OpenLink = (source: ServerSource, settings: ConnectSettings) => Link;

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;

/**
 * The back-off of reconnecting, and of greeting a server again that refuses for now. Exponential from
 * 20 ms to 2 s, half of it at random: a fleet of lockers must not come back in step.
 */
export function retryDelayMs(times: number, clock: Clock): number {
  const full = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(times - 1, 10));
  return full / 2 + (full / 2) * clock.random();
}

interface ConnectionSettings extends ConnectSettings {
  readonly source: ServerSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
  readonly retentionMs: number;
  /** The node answered its first requests: it can be asked. */
  readonly onUp: (status: NodeStatus) => void;
  /** The node cannot be asked any more, or still not. */
  readonly onDown: (cause: string) => void;
}

export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #clock: Clock;
  readonly #client: Link;
  #state: "down" | "up" | "closed" = "down";
  #cause = "connecting";
  /** The last error of the connection that is being made or used. */
  #trouble: string | undefined;
  /**
   * Number of the greeting on the socket that is open now, 0 if none: replies to an earlier
   * socket's greeting are ignored.
   */
  #greeting = 0;
  #greetings = 0;
  /** How many greetings the server has refused since it answered one. */
  #refusals = 0;
  #runId: string | undefined;
  #scripts: TaughtScripts | undefined;
  #teaching: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** The id, at the server, of the last connection that was up. */
  #predecessor: { readonly runId: string; readonly id: number } | undefined;
  #met: (() => void) | undefined;
  readonly met: Promise<void>;

  constructor(settings: ConnectionSettings) {
    this.#settings = settings;
    this.#clock = settings.clock;
    this.met = new Promise((resolve) => {
      this.#met = resolve;
    });
    this.#client = settings.openLink(settings.source, settings);
    // Every failure ends in `close`, where it is handled; `error` only says why, and what `connect`
    // rejects with is the same.
    this.#client.on("error", (error: unknown) => {
      this.#trouble = causeOf(error);
    });
    this.#client.on("connect", () => this.#limitGreeting());
    this.#client.on("ready", () => this.#greet());
    this.#client.on("close", () => this.#lost());
    this.#client.connect().catch(() => {});
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  /** Why the node cannot be asked, while it is not up. */
  get cause(): string {
    return this.#cause;
  }

  /**
   * One call of the stream of requests, with one word more if it is given; the server executes them
   * in the order of these calls. Rejects with whatever ioredis throws.
   */
  send(call: EncodedCall, lastWord: string | undefined): Promise<unknown> {
    return this.#client.send(this.#scripts?.[call.script].sha ?? "", call, lastWord);
  }

  /**
   * Loads the scripts again into a server that forgot them without a restart, once for all
   * concurrent callers; rejects if it is another server by now.
   */
  teachAgain(): Promise<void> {
    this.#teaching ??= this.#teachSameServer().finally(() => {
      this.#teaching = undefined;
    });
    return this.#teaching;
  }

  async #teachSameServer(): Promise<void> {
    const { runId } = await this.run(status);
    if (runId !== this.#runId) {
      this.breakOff("another server answers");
      throw new Error("NOSCRIPT");
    }
    await this.#teach();
  }

  /**
   * One script call of its own. Rejects when there is no answer in time, or another than the script
   * gives.
   */
  async run<Reply>(call: ScriptCall<Reply>): Promise<Reply> {
    return call.read(await this.#inTime(this.#eval(call)));
  }

  /** A setting of the server, or undefined if it is hidden. */
  async setting(name: string): Promise<string | undefined> {
    const reply: unknown = await this.#inTime(this.#client.call("CONFIG", "GET", name));
    return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : undefined;
  }

  /**
   * Ends a connection that has gone silent; a new one is made. What was not sent yet never arrives.
   */
  breakOff(cause: string): void {
    if (this.#state === "closed") return;
    this.#trouble = cause;
    this.#client.breakOff();
  }

  close(): void {
    this.#state = "closed";
    this.#cause = "closed";
    this.#clock.clearTimer(this.#timer);
    this.#client.disconnect();
    this.#met?.();
  }

  #lost(): void {
    this.#clock.clearTimer(this.#timer);
    this.#greeting = 0;
    const cause = this.#trouble ?? LOST;
    this.#trouble = undefined;
    if (this.#state !== "closed") this.#down(cause);
  }

  #down(cause: string): void {
    this.#state = "down";
    this.#cause = cause;
    this.#settings.onDown(cause);
    this.#met?.();
  }

  /**
   * A server that accepts connections and then says nothing (stopped, half-open) must not delay the
   * lock for ever.
   */
  #limitGreeting(): void {
    const { connectTimeoutMs } = this.#settings;
    this.#clock.clearTimer(this.#timer);
    this.#timer = this.#clock.setBackgroundTimer(connectTimeoutMs, () => this.breakOff(`TIMEOUT: no answer for ${connectTimeoutMs} ms`));
  }

  #greet(): void {
    if (this.#state !== "down") return;
    this.#limitGreeting();
    this.#greeting = ++this.#greetings;
    this.#firstRequests().then(this.#answerTo(this.#greeting), this.#failureOf(this.#greeting));
  }

  #answerTo(greeting: number): (answer: NodeStatus) => void {
    return (answer) => {
      if (greeting !== this.#greeting || this.#state !== "down") return;
      this.#clock.clearTimer(this.#timer);
      this.#state = "up";
      this.#refusals = 0;
      this.#settings.onUp(answer);
      this.#met?.();
    };
  }

  #failureOf(greeting: number): (error: unknown) => void {
    return (error) => {
      const cause = causeOf(error);
      // The connection is gone, or another one is being made: `close` handles it, and has the
      // cause.
      if (greeting !== this.#greeting || this.#state !== "down" || cause === LOST) return;
      this.#clock.clearTimer(this.#timer);
      this.#down(cause);
      // The server refuses for now (loading, a replica, a missing permission): ask again.
      this.#timer = this.#clock.setBackgroundTimer(retryDelayMs(++this.#refusals + 2, this.#clock), () => this.#greet());
    };
  }

  /** Asks for the node's status and the id of this connection, then loads the scripts. */
  async #firstRequests(): Promise<NodeStatus> {
    const [answer, id] = await Promise.all([this.#eval(status), this.#client.call("CLIENT", "ID").catch(() => undefined)]);
    const known = status.read(answer);
    if (known.role !== "master") throw new Error("READONLY");
    if (Number.parseInt(known.version, 10) < 7)
      throw new Error(`version ${known.version} is too old: Redis 7 or newer, or Valkey, is needed`);
    await this.#endPredecessor(known.runId);
    this.#predecessor = typeof id === "number" ? { runId: known.runId, id } : undefined;
    this.#runId = known.runId;
    this.#scripts = scriptsFor(known, this.#settings.retentionMs);
    await this.#teach();
    return known;
  }

  /**
   * Loads the scripts by calls without requests: that needs no permission but the one to run
   * scripts, which the lock needs anyway.
   */
  async #teach(): Promise<void> {
    await Promise.all(Object.values(this.#scripts ?? {}).map(({ source }) => this.#eval({ source, args: [] })));
  }

  /**
   * A grant may still be on its way on the connection before this one. If the server has not
   * noticed that connection's end, the grant would be executed after the release that is about to
   * be sent again on this one. Not after a restart of the server: the id would be another client's.
   */
  async #endPredecessor(runId: string): Promise<void> {
    if (this.#predecessor?.runId !== runId) return;
    // Where this is not allowed, or the connection is gone already, the time to live frees the
    // resource.
    await this.#client.call("CLIENT", "KILL", "ID", String(this.#predecessor.id)).catch(() => {});
  }

  #eval({ source, args }: Pick<ScriptCall<unknown>, "source" | "args">): Promise<unknown> {
    const { node, marks } = this.#settings.keys;
    return this.#client.eval(source, 2, node, marks, ...args);
  }

  #inTime<T>(asked: Promise<T>): Promise<T> {
    const { connectTimeoutMs } = this.#settings;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setBackgroundTimer(connectTimeoutMs, () => {
        const cause = `TIMEOUT: no answer for ${connectTimeoutMs} ms`;
        reject(new Error(cause));
        // Otherwise everything asked later would wait there for ever. The new connection is
        // reported as news.
        if (this.#state === "up") this.breakOff(cause);
      });
      asked.then(resolve, reject).finally(() => this.#clock.clearTimer(timer));
    });
  }
}

interface TaughtScript {
  readonly sha: string;
  readonly source: string;
}

export type TaughtScripts = Readonly<Record<AnyVerb["script"], TaughtScript>>;

/**
 * The scripts of the verbs for one server. Since Redis 7 the cache of scripts is neither kept over a
 * restart nor replicated: a script that names the server's run_id and is found in the cache was
 * loaded since the server started, so it need not ask for the run_id.
 */
export function scriptsFor({ runId }: Pick<NodeStatus, "runId">, retentionMs: number): TaughtScripts {
  const firstLine = `local RETENTION, RUN = '${retentionMs}', '+${paddedRunId(runId).slice(0, -1)}'\n`;
  const taught = Object.values(verbs).map(({ script }): [AnyVerb["script"], TaughtScript] => {
    const source = firstLine + scripts[script];
    return [script, { source, sha: createHash("sha1").update(source).digest("hex") }];
  });
  return Object.fromEntries(taught) as unknown as TaughtScripts;
}

/** What a cause means, where its word does not say so. */
const meanings: Readonly<Record<string, string>> = {
  WRONGPASS: "user name or password refused",
  NOAUTH: "the server asks for a password and none was configured",
  NOPERM: "the user lacks a permission the lock needs",
  READONLY: "a replica; the lock needs the address of its master",
  MASTERDOWN: "a replica that lost its master",
  LOADING: "still reading its data from disk",
  MISCONF: "refuses writes because it cannot save",
  OOM: "out of memory (maxmemory) and refuses writes",
  BUSY: "busy with a script",
  NOREPLICAS: "refuses writes because too few replicas follow it",
  MOVED: "part of a cluster; the lock needs servers by themselves",
  CLUSTERDOWN: "part of a cluster; the lock needs servers by themselves",
  NOSCRIPT: "it forgot the lock's script",
  EXHAUSTED: "no token is left",
  FOREIGN: "a token key holds something else",
  WRONGTYPE: "a key of the lock holds something else",
};

/** The cause when only the end of the connection is known. */
export const LOST = "connection lost";

/** The short, stable cause of a failure, as it stands in an `unreachable` ballot; without secrets. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return shorten(String(error));
  if (error.name === "MaxRetriesPerRequestError" || /^(Connection is closed|Stream isn't writeable)/.test(error.message)) return LOST;
  if ("code" in error && typeof error.code === "string" && error.code !== "") return error.code;
  return causeOfText(error.message);
}

/**
 * The cause behind an error text of the server, as thrown by ioredis or handed through by a script.
 */
export function causeOfText(message: string): string {
  if (/Protocol error|RESP type/.test(message)) return "garbage reply: not a Redis server";
  // Inside a script Redis words a missing permission differently.
  if (/can't run this command|no permission|can't access/i.test(message)) return explain("NOPERM", message);
  if (message.includes("not an integer")) return explain("FOREIGN", message);
  const word = /\b[A-Z]{3,}\b/g;
  for (const [candidate] of message.matchAll(word)) {
    if (candidate in meanings) return explain(candidate, message);
  }
  return shorten(message);
}

/** The cause where a node voted with other members than those that were asked. */
export function otherGeneration(its: string, ours: string): string {
  const named = (generation: string): string => (generation === "" ? "no generation" : `generation ${Number.parseInt(generation, 10)}`);
  return `GENERATION: it votes in ${named(its)}, and was asked in ${named(ours)}`;
}

function explain(word: string, message: string): string {
  const command = /'([\w|]+)' command/.exec(message)?.[1];
  return `${word}: ${meanings[word]}${word === "NOPERM" && command !== undefined ? ` (+${command})` : ""}`;
}

function shorten(text: string): string {
  return text.length > 120 ? `${text.slice(0, 119)}…` : text;
}
