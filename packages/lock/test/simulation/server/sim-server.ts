// One Redis server, as far as the lock can tell: lives (a start gives a new run_id and empties the cache of scripts), a memory with its own clock, scripts, channels. Executes
// commands at once and one at a time. Decides nothing about when they arrive.
import { type Loaded, type Native, type Natives, recognised, type ScriptName } from "./known-scripts.js";
import { Memory } from "./memory.js";
import type { Reply } from "./reply.js";
import type { Host, Watcher } from "./script-call.js";

/** Somebody at the other end of a connection. */
export interface Peer {
  readonly id: number;
  readonly channels: Set<string>;
  /** The server ends the connection. */
  ended(): void;
  news(channel: string, text: string): void;
}

/** How its clock goes, in true milliseconds. */
export interface ServerClock {
  readonly rate: number;
  readonly aheadMs: number;
}

export interface ServerSettings {
  readonly name: string;
  readonly now: () => number;
  readonly clock: ServerClock;
  readonly natives: Natives;
  readonly watcher?: Watcher;
  readonly appendfsync: "always" | "everysec" | "no";
  /** Told of every script that was executed, before its answer leaves. */
  readonly onExecuted?: (executed: Executed) => void;
}

export interface Executed {
  readonly server: SimServer;
  readonly name: ScriptName;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly reply: Reply;
}

export class SimServer implements Host {
  readonly name: string;
  readonly version = "7.2.4";
  memory = new Memory();
  runId = "";
  readonly #settings: ServerSettings;
  readonly #peers = new Map<number, Peer>();
  readonly #channels = new Map<string, Set<Peer>>();
  #scripts = new Map<string, Loaded>();
  #bySource = new Map<string, Loaded>();
  #lives = 0;
  #peerIds = 0;
  #startedMs = 0;
  #jumpedMs = 0;

  constructor(settings: ServerSettings) {
    this.name = settings.name;
    this.#settings = settings;
    this.#begin();
  }

  wallMs(): number {
    const { now, clock } = this.#settings;
    return Math.floor(clock.aheadMs + this.#jumpedMs + now() * clock.rate);
  }

  get watcher(): Watcher | undefined {
    return this.#settings.watcher;
  }

  uptimeSeconds(): number {
    return Math.floor(this.wallMs() / 1_000) - Math.floor(this.#startedMs / 1_000);
  }

  jumpClock(byMs: number): void {
    this.#jumpedMs += byMs;
  }

  listeners(channel: string): number {
    return this.#channels.get(channel)?.size ?? 0;
  }

  publish(channel: string, news: string): void {
    for (const peer of this.#channels.get(channel) ?? []) peer.news(channel, news);
  }

  /** A new connection. */
  welcome(make: (id: number) => Peer): Peer {
    const peer = make(++this.#peerIds);
    this.#peers.set(peer.id, peer);
    return peer;
  }

  /** The connection is gone, as the server sees it. */
  forget(peer: Peer): void {
    this.#peers.delete(peer.id);
    for (const channel of peer.channels) this.#unsubscribe(peer, channel);
  }

  /** Ends this life, and with it all connections. */
  end(): void {
    for (const peer of [...this.#peers.values()]) {
      peer.ended();
      this.forget(peer);
    }
  }

  /** Begins the next one. What it remembers is up to the caller. */
  start(memory: Memory): void {
    this.memory = memory;
    this.#begin();
  }

  flushScripts(): void {
    this.#scripts = new Map();
    this.#bySource = new Map();
  }

  eval(source: string, keyCount: number, text: readonly string[]): Reply {
    let script = this.#bySource.get(source);
    if (script === undefined) {
      script = recognised(source);
      this.#bySource.set(source, script);
      this.#scripts.set(script.sha, script);
    }
    return this.#run(script, keyCount, text);
  }

  /** Throws NOSCRIPT where this life has not seen the script. */
  evalsha(sha: string, keyCount: number, text: readonly string[]): Reply {
    const script = this.#scripts.get(sha);
    if (script === undefined) throw new Error("NOSCRIPT No matching script. Please use EVAL.");
    return this.#run(script, keyCount, text);
  }

  /** CLIENT ID, CLIENT KILL ID, CONFIG GET: what else the lock says. */
  call(peer: Peer, command: string, args: readonly string[]): Reply {
    const said = [command, ...args].join(" ");
    if (said === "CLIENT ID") return peer.id;
    if (said.startsWith("CLIENT KILL ID ")) return this.#kill(Number(args[2]));
    if (said === "CONFIG GET appendonly") return ["appendonly", this.#settings.appendfsync === "no" ? "no" : "yes"];
    if (said === "CONFIG GET appendfsync")
      return ["appendfsync", this.#settings.appendfsync === "no" ? "everysec" : this.#settings.appendfsync];
    throw new Error(`the simulated server does not know ${said}`);
  }

  subscribe(peer: Peer, channels: readonly string[]): Reply {
    for (const channel of channels) {
      peer.channels.add(channel);
      const there = this.#channels.get(channel);
      if (there === undefined) this.#channels.set(channel, new Set([peer]));
      else there.add(peer);
    }
    return peer.channels.size;
  }

  unsubscribe(peer: Peer, channels: readonly string[]): Reply {
    for (const channel of channels) {
      this.#unsubscribe(peer, channel);
      peer.channels.delete(channel);
    }
    return peer.channels.size;
  }

  #unsubscribe(peer: Peer, channel: string): void {
    const there = this.#channels.get(channel);
    there?.delete(peer);
    if (there?.size === 0) this.#channels.delete(channel);
  }

  #kill(id: number): Reply {
    const peer = this.#peers.get(id);
    if (peer === undefined) throw new Error("ERR No such client ID");
    peer.ended();
    this.forget(peer);
    return 1;
  }

  #run(script: Loaded, keyCount: number, text: readonly string[]): Reply {
    const { natives, onExecuted } = this.#settings;
    const native: Native = natives[script.name];
    const keys = text.slice(0, keyCount);
    const args = text.slice(keyCount);
    const reply = native({
      host: this,
      memory: this.memory,
      nowMs: this.wallMs(),
      keys,
      args,
      retentionMs: script.retentionMs,
      run: script.run,
    });
    onExecuted?.({ server: this, name: script.name, keys, args, reply });
    return reply;
  }

  #begin(): void {
    this.runId = `${this.name}life${++this.#lives}`.padEnd(40, "x");
    this.#startedMs = this.wallMs();
    this.flushScripts();
  }
}
