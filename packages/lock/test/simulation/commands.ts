// Thrown for anything that the simulated server does not implement. It ends the run, so that it
// cannot pass for an answer of Redis.

export class Unsupported extends Error {
  constructor(what: string) {
    super(`the simulated server does not support ${what}`);
  }
}

// The data of one simulated Redis server: strings that may expire, hashes, and sorted sets. Every call passes
// the server's time; like Redis, a script sees one time from start to end.
export type Hash = Map<string, string>;

interface Entry {
  value: string | Hash;
  /** The last millisecond in which the key exists. */
  endsMs: number;
}

const FOR_EVER = Number.POSITIVE_INFINITY;

/** An error that Redis answers. */
export class RedisError extends Error {}

const wrongType = (): RedisError => new RedisError("WRONGTYPE Operation against a key holding the wrong kind of value");

export class Memory {
  #entries = new Map<string, Entry>();

  get(key: string, nowMs: number): string | undefined {
    const value = this.#entry(key, nowMs)?.value;
    if (value instanceof Map) throw wrongType();
    return value;
  }

  /** As MGET reads it: what is no string is missing. */
  string(key: string, nowMs: number): string | undefined {
    const value = this.#entry(key, nowMs)?.value;
    return value instanceof Map ? undefined : value;
  }

  hash(key: string, nowMs: number): Hash | undefined {
    const value = this.#entry(key, nowMs)?.value;
    if (value === undefined || value instanceof Map) return value;
    throw wrongType();
  }

  /** SET, with PX if an end is given. */
  set(key: string, value: string, endsMs = FOR_EVER): void {
    this.#entries.set(key, { value, endsMs });
  }

  /** Changes the value and keeps the time to live. */
  change(key: string, value: string, nowMs: number): void {
    const entry = this.#entry(key, nowMs);
    if (entry === undefined) this.set(key, value);
    else entry.value = value;
  }

  /** The hash at a key, created if absent. */
  madeHash(key: string, nowMs: number): Hash {
    let hash = this.hash(key, nowMs);
    if (hash === undefined) {
      hash = new Map();
      this.#entries.set(key, { value: hash, endsMs: FOR_EVER });
    }
    return hash;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  /** PEXPIRE */
  endAt(key: string, endsMs: number, nowMs: number): void {
    const entry = this.#entry(key, nowMs);
    if (entry !== undefined) entry.endsMs = endsMs;
  }

  /** PTTL: −2 without a key, −1 without an end. */
  leftMs(key: string, nowMs: number): number {
    const entry = this.#entry(key, nowMs);
    if (entry === undefined) return -2;
    return entry.endsMs === FOR_EVER ? -1 : entry.endsMs - nowMs;
  }

  /** FLUSHALL */
  clear(): void {
    this.#entries.clear();
  }

  /** A snapshot, as a disk would keep it. */
  copy(): Memory {
    const copy = new Memory();
    for (const [key, { value, endsMs }] of this.#entries)
      copy.#entries.set(key, { value: value instanceof Map ? new Map(value) : value, endsMs });
    return copy;
  }

  /** All keys that have not expired. */
  *alive(nowMs: number): Generator<{ readonly key: string; readonly value: string | Hash; readonly leftMs: number }> {
    for (const [key, { value, endsMs }] of this.#entries)
      if (endsMs >= nowMs) yield { key, value, leftMs: endsMs === FOR_EVER ? -1 : endsMs - nowMs };
  }

  #entry(key: string, nowMs: number): Entry | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || entry.endsMs >= nowMs) return entry;
    this.#entries.delete(key);
    return undefined;
  }
}

// The Redis commands that the scripts call, on the memory of one simulated server. Any option that
// the scripts do not use is refused.

/** A status reply, as SET gives it. */
export class Status {
  constructor(readonly text: string) {}
}

/** A reply as the client reads it; null is a missing value. */
export type Reply = number | string | null | readonly Reply[];

/** What commands see of the server while one script runs. */
export interface Execution {
  readonly memory: Memory;
  /** Unix milliseconds by the server's clock. */
  readonly nowMs: number;
  readonly commands: Commands;
  readonly host: {
    /** INFO of one section. */
    info(section: string): string;
    listeners(channel: string): number;
    publish(channel: string, news: string): number;
  };
}

export type Command = (execution: Execution, args: readonly string[]) => Reply | Status;
export type Commands = Readonly<Record<string, Command>>;

const OK = new Status("OK");
const HIGHEST = Number.MAX_SAFE_INTEGER;

/** Checks the number of arguments. */
function taking(count: number | { readonly least: number }, run: Command): Command {
  return (execution, args) => {
    const fits = typeof count === "number" ? args.length === count : args.length >= count.least;
    if (!fits) throw new RedisError("ERR Wrong number of args calling Redis command from script");
    return run(execution, args);
  };
}

/** Of 64 bits, as Redis counts. */
function wholeNumberIn(text: string): bigint {
  if (!/^(0|-?[1-9]\d*)$/.test(text) || text.length > 20 || BigInt.asIntN(64, BigInt(text)) !== BigInt(text))
    throw new RedisError("ERR value is not an integer or out of range");
  return BigInt(text);
}

function integerIn(text: string): number {
  const number = Number(wholeNumberIn(text));
  if (Math.abs(number) > HIGHEST) throw new Unsupported(`the integer ${text}`);
  return number;
}

function set({ memory, nowMs }: Execution, [key = "", value = "", ...options]: readonly string[]): Reply | Status {
  const text = options.join(" ");
  const [, onlyNew, ttl] = /^(NX)? ?(?:PX (\S+))?$/.exec(text) ?? [];
  if (text !== "" && onlyNew === undefined && ttl === undefined) throw new Unsupported(`SET … ${text}`);
  const ttlMs = ttl === undefined ? undefined : integerIn(ttl);
  if (ttlMs !== undefined && ttlMs <= 0) throw new RedisError("ERR invalid expire time in 'set' command");
  if (onlyNew !== undefined && memory.leftMs(key, nowMs) !== -2) return null;
  memory.set(key, value, ttlMs === undefined ? undefined : nowMs + ttlMs);
  return OK;
}

function add({ memory, nowMs }: Execution, key: string, difference: number): Reply {
  const number = wholeNumberIn(memory.get(key, nowMs) ?? "0") + BigInt(difference);
  if (BigInt.asIntN(64, number) !== number) throw new RedisError("ERR increment or decrement would overflow");
  memory.change(key, String(number), nowMs);
  return Number(number);
}

function hset({ memory, nowMs }: Execution, [key = "", ...pairs]: readonly string[]): Reply {
  if (pairs.length % 2 !== 0) throw new RedisError("ERR wrong number of arguments for 'hset' command");
  let added = 0;
  const hash = memory.madeHash(key, nowMs);
  for (let i = 0; i < pairs.length; i += 2) {
    if (!hash.has(pairs[i] as string)) added++;
    hash.set(pairs[i] as string, pairs[i + 1] as string);
  }
  return added;
}

function expire({ memory, nowMs }: Execution, [key = "", ttl = ""]: readonly string[]): Reply {
  const ttlMs = integerIn(ttl);
  if (memory.leftMs(key, nowMs) === -2) return 0;
  if (ttlMs <= 0) memory.delete(key);
  else memory.endAt(key, nowMs + ttlMs, nowMs);
  return 1;
}

function pubsub({ host }: Execution, [what, ...channels]: readonly string[]): Reply {
  if (what !== "NUMSUB") throw new Unsupported(`PUBSUB ${what}`);
  return channels.flatMap((channel) => [channel, host.listeners(channel)]);
}

/** The members of a sorted set, which is kept as a hash of scores, from the lowest. */
function ranked({ memory, nowMs }: Execution, key: string): readonly string[] {
  const scores = [...(memory.hash(key, nowMs) ?? [])];
  return scores.sort(([a, one], [b, other]) => Number(one) - Number(other) || (a < b ? -1 : 1)).map(([member]) => member);
}

function zrange(execution: Execution, [key = "", from = "", to = ""]: readonly string[]): Reply {
  const [first, last] = [integerIn(from), integerIn(to)];
  return ranked(execution, key).slice(first, last === -1 ? undefined : last + 1);
}

function hdel({ memory, nowMs }: Execution, [key = "", ...fields]: readonly string[]): Reply {
  const hash = memory.hash(key, nowMs);
  const removed = fields.filter((field) => hash?.delete(field)).length;
  if (hash?.size === 0) memory.delete(key);
  return removed;
}

export const commands: Commands = {
  ZADD: taking(3, (execution, [key = "", score = "", member = ""]) => hset(execution, [key, member, String(integerIn(score))])),
  ZREM: taking({ least: 2 }, hdel),
  ZCARD: taking(1, ({ memory, nowMs }, [key = ""]) => memory.hash(key, nowMs)?.size ?? 0),
  ZSCORE: taking(2, ({ memory, nowMs }, [key = "", member = ""]) => memory.hash(key, nowMs)?.get(member) ?? null),
  ZRANK: taking(2, (execution, [key = "", member = ""]) => {
    const rank = ranked(execution, key).indexOf(member);
    return rank < 0 ? null : rank;
  }),
  ZRANGE: taking(3, zrange),
  GET: taking(1, ({ memory, nowMs }, [key = ""]) => memory.get(key, nowMs) ?? null),
  SET: taking({ least: 2 }, set),
  INCR: taking(1, (execution, [key = ""]) => add(execution, key, 1)),
  DECR: taking(1, (execution, [key = ""]) => add(execution, key, -1)),
  MGET: taking({ least: 1 }, ({ memory, nowMs }, keys) => keys.map((key) => memory.string(key, nowMs) ?? null)),
  DEL: taking({ least: 1 }, ({ memory, nowMs }, keys) => {
    const there = keys.filter((key) => memory.leftMs(key, nowMs) !== -2).length;
    for (const key of keys) memory.delete(key);
    return there;
  }),
  EXISTS: taking({ least: 1 }, ({ memory, nowMs }, keys) => keys.filter((key) => memory.leftMs(key, nowMs) !== -2).length),
  PTTL: taking(1, ({ memory, nowMs }, [key = ""]) => memory.leftMs(key, nowMs)),
  PEXPIRE: taking(2, expire),
  HGET: taking(2, ({ memory, nowMs }, [key = "", field = ""]) => memory.hash(key, nowMs)?.get(field) ?? null),
  HMGET: taking({ least: 2 }, ({ memory, nowMs }, [key = "", ...fields]) => {
    const hash = memory.hash(key, nowMs);
    return fields.map((field) => hash?.get(field) ?? null);
  }),
  HGETALL: taking(1, ({ memory, nowMs }, [key = ""]) => [...(memory.hash(key, nowMs) ?? [])].flat()),
  HSET: taking({ least: 3 }, hset),
  HDEL: taking({ least: 2 }, hdel),
  TIME: taking(0, ({ nowMs }) => [String(Math.floor(nowMs / 1_000)), String((nowMs % 1_000) * 1_000)]),
  INFO: taking(1, ({ host }, [section = ""]) => host.info(section)),
  PUBLISH: taking(2, ({ host }, [channel = "", news = ""]) => host.publish(channel, news)),
  PUBSUB: taking({ least: 2 }, pubsub),
};

export function execute(execution: Execution, name: string, args: readonly string[]): Reply | Status {
  const command = execution.commands[name];
  if (command === undefined) throw new Unsupported(`the command ${name}`);
  return command(execution, args);
}
