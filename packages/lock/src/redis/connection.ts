// The life of one connection to one master: connecting, first questions (status and script), up, lost, again. Knows whether the node can be asked and, if not, why.
// Never retries a question: what was on its way when the connection was lost has an unknown outcome, and only the caller knows what that means.

import type { NodeSource } from "../options/node-source.js";
import { hasFailover } from "../options/node-source.js";
import type { Clock, Timer } from "../platform/clock.js";
import { causeOf, LOST } from "./causes.js";
import type { EncodedCall } from "./encoded-call.js";
import type { Keys } from "./keys.js";
import type { ConnectSettings, Link, OpenLink } from "./link.js";
import { type NodeStatus, type ScriptCall, status } from "./node-record.js";
import { type RequestScripts, requestScriptsFor } from "./request-scripts.js";

export interface ConnectionSettings extends ConnectSettings {
  readonly source: NodeSource;
  readonly openLink: OpenLink;
  readonly keys: Keys;
  readonly retentionMs: number;
  /** The node answered its first questions: ask away. */
  readonly onUp: (status: NodeStatus) => void;
  /** The node cannot be asked any more, or still not. */
  readonly onDown: (cause: string) => void;
}

const GREET_AGAIN_FIRST_MS = 50;
const GREET_AGAIN_LAST_MS = 2_000;

/** A connection that fails, fails with `error` and `close`; the rejection says nothing that they do not say. */
function toldByEvents(): void {}

/** A server that does not say who we are to it, or may not be told to end a connection: a courtesy less. */
function notTold(): undefined {
  return undefined;
}

export class Connection {
  readonly #settings: ConnectionSettings;
  readonly #clock: Clock;
  readonly #client: Link;
  #state: "down" | "up" | "closed" = "down";
  #cause = "connecting";
  /** What was last heard to be wrong with the connection that is being made or used. */
  #trouble: string | undefined;
  /** Of the socket that is open now: answers of an earlier one's greeting are ignored. */
  #greeting = 0;
  #greetings = 0;
  #runId: string | undefined;
  #scripts: RequestScripts | undefined;
  #teaching: Promise<void> | undefined;
  #timer: Timer | undefined;
  /** The last connection that was up, as the server calls it. */
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
    // Whatever goes wrong with a connection ends in `close`, which is where we act; `error` only says why.
    this.#client.on("error", (error: unknown) => {
      this.#trouble = causeOf(error);
    });
    this.#client.on("connect", () => this.#limitGreeting());
    this.#client.on("ready", () => this.#greet());
    this.#client.on("close", () => this.#lost());
    this.#client.connect().catch(toldByEvents);
  }

  get isUp(): boolean {
    return this.#state === "up";
  }

  /** Why the node cannot be asked, while it is not up. */
  get cause(): string {
    return this.#cause;
  }

  /** One call of the stream of requests; the server executes them in the order of these calls. Rejects with whatever ioredis throws. */
  send(call: EncodedCall, belief: string | undefined): Promise<unknown> {
    return this.#client.post(this.#scripts?.[call.name].sha ?? "", call, belief);
  }

  /** Teaches a server the scripts again that forgot them in the middle of its life, once for all who ask meanwhile; rejects if it is another server by now. */
  teachAgain(): Promise<void> {
    this.#teaching ??= this.#teachSameLife().finally(() => {
      this.#teaching = undefined;
    });
    return this.#teaching;
  }

  async #teachSameLife(): Promise<void> {
    const { runId } = await this.run(status(this.#settings.keys));
    if (runId !== this.#runId) {
      this.breakOff("another server answers");
      throw new Error("NOSCRIPT");
    }
    await this.#teach();
  }

  /** One script call of its own. Rejects when there is no answer in time, or another than the script gives. */
  async run<Reply>(call: ScriptCall<Reply>): Promise<Reply> {
    const asked = this.#client.eval(call.source, call.keys.length, ...call.keys, ...call.args);
    return call.read(await this.#inTime(asked));
  }

  /** A setting of the server, or undefined if it does not tell. */
  async setting(name: string): Promise<string | undefined> {
    const reply: unknown = await this.#inTime(this.#client.call("CONFIG", "GET", name));
    return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : undefined;
  }

  /** Gives up a connection that has gone silent; a new one is made. What was not sent yet never arrives. */
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

  /** A server that accepts connections and then says nothing (stopped, half-open) must not keep us waiting for ever. */
  #limitGreeting(): void {
    const { connectTimeoutMs } = this.#settings;
    this.#clock.clearTimer(this.#timer);
    this.#timer = this.#clock.setBackgroundTimer(connectTimeoutMs, () => this.breakOff(`TIMEOUT: no answer for ${connectTimeoutMs} ms`));
  }

  #greet(): void {
    if (this.#state !== "down") return;
    this.#limitGreeting();
    this.#greeting = ++this.#greetings;
    this.#firstQuestions().then(this.#answerTo(this.#greeting), this.#failureOf(this.#greeting));
  }

  #answerTo(greeting: number): (answer: NodeStatus) => void {
    return (answer) => {
      if (greeting !== this.#greeting || this.#state !== "down") return;
      this.#clock.clearTimer(this.#timer);
      this.#state = "up";
      this.#settings.onUp(answer);
      this.#met?.();
    };
  }

  #failureOf(greeting: number): (error: unknown) => void {
    return (error) => {
      const cause = causeOf(error);
      // The connection is gone, or another one is being made: `close` tells, and knows why.
      if (greeting !== this.#greeting || this.#state !== "down" || cause === LOST) return;
      this.#clock.clearTimer(this.#timer);
      this.#down(cause);
      // The server is there and says no (loading, a replica, a missing permission): ask again, it may change.
      const delayMs = Math.min(GREET_AGAIN_LAST_MS, GREET_AGAIN_FIRST_MS * 2 ** Math.min(this.#greetings, 10));
      this.#timer = this.#clock.setBackgroundTimer(delayMs * (0.5 + this.#clock.random() / 2), () => this.#greet());
    };
  }

  /** What is the node, and who are we to it? Then it learns the scripts for its present life. */
  async #firstQuestions(): Promise<NodeStatus> {
    const { keys, source, retentionMs } = this.#settings;
    const statusCall = status(keys);
    const [answer, id] = await Promise.all([
      this.#client.eval(statusCall.source, statusCall.keys.length, ...statusCall.keys),
      this.#client.isCluster ? undefined : this.#client.call("CLIENT", "ID").catch(notTold),
    ]);
    const known = statusCall.read(answer);
    if (known.role !== "master") throw new Error("READONLY");
    const [major = 0, minor = 0] = known.version.split(".").map(Number);
    if (major < 6 || (major === 6 && minor < 2))
      throw new Error(`version ${known.version} is too old: Redis 6.2 or newer, or Valkey, is needed`);
    await this.#endPredecessor(known.runId);
    this.#predecessor = typeof id === "number" ? { runId: known.runId, id } : undefined;
    this.#runId = known.runId;
    this.#scripts = requestScriptsFor(known, { failover: hasFailover(source) ? "failover" : "one server", retentionMs });
    await this.#teach();
    return known;
  }

  /** By calls without requests: that needs no permission but the one to run scripts, which the lock needs anyway. */
  async #teach(): Promise<void> {
    const { keys } = this.#settings;
    await Promise.all(Object.values(this.#scripts ?? {}).map(({ source }) => this.#client.eval(source, 1, keys.node)));
  }

  /**
   * A grant may still be on its way on the connection before this one, and would be executed after the release that is about to be sent again on this one, if the
   * server does not know yet that it is over. Not for the numbers of an earlier life of the server: they are other clients' by now.
   */
  async #endPredecessor(runId: string): Promise<void> {
    if (this.#predecessor?.runId !== runId) return;
    // Where this is not allowed, or the connection is gone already, the time to live does the work.
    await this.#client.call("CLIENT", "KILL", "ID", String(this.#predecessor.id)).catch(notTold);
  }

  #inTime<T>(asked: Promise<T>): Promise<T> {
    const { connectTimeoutMs } = this.#settings;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setBackgroundTimer(connectTimeoutMs, () => {
        const cause = `TIMEOUT: no answer for ${connectTimeoutMs} ms`;
        reject(new Error(cause));
        // Or what is asked again and again would wait there for ever. The new connection is news.
        if (this.#state === "up") this.breakOff(cause);
      });
      asked.then(resolve, reject).finally(() => this.#clock.clearTimer(timer));
    });
  }
}
