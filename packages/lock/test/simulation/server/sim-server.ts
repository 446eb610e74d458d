// One simulated Redis server: its lives (a start gives a new run_id and empties the cache of
// scripts), a memory with its own clock, scripts, channels. Commands are executed at once, one at a
// time.
import * as lua from "#lock/redis/lua.generated.js";
import { RESERVED_MS } from "#lock/waiting/wake-up.js";
import { type Commands, commands, type Execution, type Reply } from "./commands.js";
import { Memory, RedisError, Unsupported } from "./memory.js";
import { compile, type Script } from "./script.js";

type Exports = typeof lua;
/** The lock's name of a script: the name of its export without `Script`. */
export type ScriptName = {
  [Name in keyof Exports]: Name extends `${infer Script}Script` ? Script : never;
}[keyof Exports];

/** The other end of a connection. */
export interface Peer {
  readonly id: number;
  readonly channels: Set<string>;
  /** The server ends the connection. */
  ended(): void;
  news(channel: string, text: string): void;
}

/** The server's clock, relative to true time. */
export interface ServerClock {
  readonly rate: number;
  readonly aheadMs: number;
}

export interface ServerSettings {
  readonly name: string;
  readonly now: () => number;
  readonly clock: ServerClock;
  readonly appendfsync: "always" | "everysec" | "no";
  /** Commands that answer wrongly, for tests that must notice it. */
  readonly commands?: Commands;
  /** For controls: changes the text of a script before it is compiled. */
  readonly edit?: (name: ScriptName | undefined, text: string) => string;
  /** For controls: changes an answer before it is sent. */
  readonly answer?: (executed: Executed) => Reply;
  /** Called after every script, before its answer is sent. */
  readonly onExecuted?: (executed: Executed) => void;
}

export interface Executed {
  readonly server: SimServer;
  /** undefined: not a script of the lock. */
  readonly name: ScriptName | undefined;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly reply: Reply;
}

/** Names of the lock's scripts by text. */
const names = new Map(Object.entries(lua).map(([name, text]) => [text as string, name.slice(0, -"Script".length) as ScriptName]));

/** A script that reserves for longer is the same script. */
function nameOf(text: string): ScriptName | undefined {
  return names.get(text.replace(/(?<=local RESERVED_MS = )\d+/, String(RESERVED_MS)));
}

export class SimServer {
  readonly name: string;
  memory = new Memory();
  runId = "";
  readonly #settings: ServerSettings;
  readonly #peers = new Map<number, Peer>();
  readonly #channels = new Map<string, Set<Peer>>();
  #scripts = new Map<string, Script>();
  #bySource = new Map<string, Script>();
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

  /** INFO of one section. */
  info(section: string): string {
    const uptime = Math.floor(this.wallMs() / 1_000) - Math.floor(this.#startedMs / 1_000);
    const sections: Readonly<Record<string, readonly string[]>> = {
      server: ["redis_version:7.2.4", "redis_mode:standalone", `run_id:${this.runId}`, `uptime_in_seconds:${uptime}`],
      replication: ["role:master", "connected_slaves:0", `master_replid2:${"0".repeat(40)}`],
    };
    const lines = sections[section];
    if (lines === undefined) throw new Unsupported(`INFO ${section}`);
    return `# ${section}\r\n${lines.join("\r\n")}\r\n`;
  }

  jumpClock(byMs: number): void {
    this.#jumpedMs += byMs;
  }

  listeners(channel: string): number {
    return this.#channels.get(channel)?.size ?? 0;
  }

  publish(channel: string, news: string): number {
    for (const peer of this.#channels.get(channel) ?? []) peer.news(channel, news);
    return this.listeners(channel);
  }

  /** A new connection. */
  welcome(make: (id: number) => Peer): Peer {
    const peer = make(++this.#peerIds);
    this.#peers.set(peer.id, peer);
    return peer;
  }

  /** The server has seen the end of the connection. */
  forget(peer: Peer): void {
    this.#peers.delete(peer.id);
    for (const channel of peer.channels) this.#unsubscribe(peer, channel);
  }

  /** Ends this life and all connections. */
  end(): void {
    for (const peer of [...this.#peers.values()]) {
      peer.ended();
      this.forget(peer);
    }
  }

  /** Begins the next life with the given memory. */
  start(memory: Memory): void {
    this.memory = memory;
    this.#begin();
  }

  flushScripts(): void {
    this.#scripts = new Map();
    this.#bySource = new Map();
  }

  eval(source: string, keyCount: number, words: readonly string[]): Reply {
    let script = this.#bySource.get(source);
    if (script === undefined) {
      const { edit } = this.#settings;
      script = compile(source, (text) => edit?.(nameOf(text), text) ?? text);
      this.#bySource.set(source, script);
      this.#scripts.set(script.sha, script);
    }
    return this.#run(script, keyCount, words);
  }

  /** Throws NOSCRIPT if the script was not loaded in this life. */
  evalsha(sha: string, keyCount: number, words: readonly string[]): Reply {
    const script = this.#scripts.get(sha);
    if (script === undefined) throw new RedisError("NOSCRIPT No matching script. Please use EVAL.");
    return this.#run(script, keyCount, words);
  }

  /** The other commands that the lock sends: CLIENT ID, CLIENT KILL ID, CONFIG GET. */
  call(peer: Peer, command: string, args: readonly string[]): Reply {
    const said = [command, ...args].join(" ");
    if (said === "CLIENT ID") return peer.id;
    if (said.startsWith("CLIENT KILL ID ")) return this.#kill(Number(args[2]));
    if (said === "CONFIG GET appendonly") return ["appendonly", this.#settings.appendfsync === "no" ? "no" : "yes"];
    if (said === "CONFIG GET appendfsync")
      return ["appendfsync", this.#settings.appendfsync === "no" ? "everysec" : this.#settings.appendfsync];
    if (said === "CONFIG GET no-appendfsync-on-rewrite") return ["no-appendfsync-on-rewrite", "no"];
    throw new Unsupported(said);
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

  #unsubscribe(peer: Peer, channel: string): void {
    const there = this.#channels.get(channel);
    there?.delete(peer);
    if (there?.size === 0) this.#channels.delete(channel);
  }

  #kill(id: number): Reply {
    const peer = this.#peers.get(id);
    if (peer === undefined) throw new RedisError("ERR No such client ID");
    peer.ended();
    this.forget(peer);
    return 1;
  }

  #run(script: Script, keyCount: number, words: readonly string[]): Reply {
    const { onExecuted, answer } = this.#settings;
    const [keys, args] = [words.slice(0, keyCount), words.slice(keyCount)];
    const execution: Execution = {
      memory: this.memory,
      nowMs: this.wallMs(),
      host: this,
      commands: this.#settings.commands ?? commands,
    };
    const executed: Executed = {
      server: this,
      name: nameOf(script.text),
      keys,
      args,
      reply: script.run(execution, keys, args),
    };
    const reply = answer?.(executed) ?? executed.reply;
    onExecuted?.({ ...executed, reply });
    return reply;
  }

  #begin(): void {
    this.runId = `${this.name}life${++this.#lives}`.padEnd(40, "x");
    this.#startedMs = this.wallMs();
    this.flushScripts();
  }
}
