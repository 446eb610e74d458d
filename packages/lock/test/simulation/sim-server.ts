// One simulated Redis server: its lives (a start gives a new run_id and empties the cache of
// scripts), a memory with its own clock, scripts, channels. Commands are executed at once, one at a
// time.

import { createHash } from "node:crypto";
import { scripts } from "#lock/redis/lua.generated.js";
import { type Commands, commands, type Execution, execute, Memory, RedisError, type Reply, Status, Unsupported } from "./commands.js";
import { first, LuaError, Table, truthy, type Value } from "./lua.js";
import { type Chunk, parse, translate } from "./translate.js";

export type ScriptName = keyof typeof scripts;

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
const names = new Map(Object.entries(scripts).map(([name, text]) => [text as string, name as ScriptName]));

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
  #isDeaf = false;

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
      script = compile(source, (text) => edit?.(names.get(text), text) ?? text);
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

  /** What CONFIG GET tells. */
  #setting(name: string): string | undefined {
    const { appendfsync } = this.#settings;
    const told: Readonly<Record<string, string>> = {
      appendonly: appendfsync === "no" ? "no" : "yes",
      appendfsync: appendfsync === "no" ? "everysec" : appendfsync,
      "no-appendfsync-on-rewrite": "no",
      "maxmemory-policy": "noeviction",
      maxmemory: "0",
    };
    return told[name];
  }

  /** The other commands that the lock sends: CLIENT ID, CLIENT KILL ID, CONFIG GET. */
  call(peer: Peer, command: string, args: readonly string[]): Reply {
    const said = [command, ...args].join(" ");
    if (said === "CLIENT ID") return peer.id;
    if (said.startsWith("CLIENT KILL ID ")) return this.#kill(Number(args[2]));
    const [, name = ""] = args;
    const setting = said.startsWith("CONFIG GET ") ? this.#setting(name) : undefined;
    if (setting !== undefined) return [name, setting];
    throw new Unsupported(said);
  }

  get subscribers(): number {
    return [...this.#peers.values()].filter(({ channels }) => channels.size > 0).length;
  }

  /** Takes the right to subscribe away, and ends the connections that have. */
  deafen(): void {
    this.#isDeaf = true;
    for (const peer of [...this.#peers.values()].filter(({ channels }) => channels.size > 0)) {
      peer.ended();
      this.forget(peer);
    }
  }

  subscribe(peer: Peer, channels: readonly string[]): Reply {
    if (this.#isDeaf) throw new RedisError("NOPERM User default has no permissions to run the 'subscribe' command");
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
      name: names.get(script.text),
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

// A Lua script in a simulated server: compiled once per process, executed as Redis executes it.

export interface Script {
  readonly sha: string;
  /** The text after the first line, in which the client puts RETENTION and RUN. */
  readonly text: string;
  run(execution: Execution, keys: readonly string[], args: readonly string[]): Reply;
}

const NOT_ASCII = /[^\n\r -~]/;
const chunks = new Map<string, Chunk>();

/** `edit` changes the text, for controls. */
export function compile(source: string, edit: (text: string) => string): Script {
  const { names, values, text } = divided(source);
  const edited = edit(text);
  const id = `${names.join()}\n${edited}`;
  let chunk = chunks.get(id);
  if (chunk === undefined) {
    chunk = translate(edited, names);
    chunks.set(id, chunk);
  }
  const run = chunk;
  return {
    sha: createHash("sha1").update(source).digest("hex"),
    text,
    run: (execution, keys, args) => answered(() => run(redisFor(execution), listOf(keys), listOf(args), ...values)),
  };
}

/** Lua counts bytes and JavaScript characters; both agree only on ASCII. */
function listOf(words: readonly string[]): Table {
  for (const word of words) if (NOT_ASCII.test(word)) throw new Unsupported(`a word beyond ASCII: ${word}`);
  return new Table([...words]);
}

/** Splits off a first line that only names values, which differ per life of a server. */
function divided(source: string): { readonly names: readonly string[]; readonly values: readonly Value[]; readonly text: string } {
  const [, line = "", text = ""] = /^(local [\w, ]+ = [^\n]*\n)([\s\S]*)$/.exec(source) ?? [];
  const [statement] = line === "" ? [] : parse(line);
  if (statement?.type !== "LocalStatement") return { names: [], values: [], text: source };
  const isPlain = statement.init.every(({ type }) => type === "StringLiteral" || type === "BooleanLiteral");
  if (!isPlain || statement.init.length !== statement.variables.length) return { names: [], values: [], text: source };
  return {
    names: statement.variables.map(({ name }) => name),
    values: statement.init.map((literal) => (literal as { readonly value: string | boolean }).value),
    text,
  };
}

function redisFor(execution: Execution): Table {
  const call = (command: Value, ...args: Value[]): Value => fromReply(execute(execution, String(command), args.map(argument)));
  return new Table([], {
    sha1hex: (text) => createHash("sha1").update(String(text)).digest("hex"),
    call(command, ...args) {
      try {
        return call(command, ...args);
      } catch (error) {
        if (error instanceof RedisError) throw new LuaError(new Table([], { err: error.message }));
        throw error;
      }
    },
    pcall(command, ...args) {
      try {
        return call(command, ...args);
      } catch (error) {
        if (error instanceof RedisError) return new Table([], { err: error.message });
        throw error;
      }
    },
  });
}

function argument(value: Value): string {
  if (typeof value === "string") return value;
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value);
  throw new Unsupported(`the argument ${String(value)} of a command`);
}

function fromReply(reply: Reply | Status): Value {
  if (reply === null) return false;
  if (typeof reply === "number" || typeof reply === "string") return reply;
  if (reply instanceof Status) return new Table([], { ok: reply.text });
  return new Table(reply.map(fromReply));
}

function answered(run: () => ReturnType<Chunk>): Reply {
  try {
    return toReply(first(run()));
  } catch (error) {
    if (!(error instanceof LuaError)) throw error;
    const { value } = error;
    throw new RedisError(value instanceof Table ? String(value.get("err")) : `ERR ${String(value)}`);
  }
}

/** As Redis converts replies: numbers are truncated, nil and false are a null reply. */
function toReply(value: Value): Reply {
  if (typeof value === "number") return Math.trunc(value);
  if (typeof value === "string") return value;
  if (!truthy(value)) return null;
  if (!(value instanceof Table)) return 1;
  const [err, ok] = [value.get("err"), value.get("ok")];
  if (typeof err === "string") throw new RedisError(err);
  return typeof ok === "string" ? ok : value.list.map(toReply);
}
