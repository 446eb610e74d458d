// Thrown for anything that the simulated server does not implement. It ends the run, so that it
// cannot pass for an answer of Redis.

export class Unsupported extends Error {
  constructor(what: string) {
    super(`the simulated server does not support ${what}`);
  }
}

// The data of one simulated Redis server: strings that may expire, and hashes. Every call passes
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
