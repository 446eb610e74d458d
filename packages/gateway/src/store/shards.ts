// Which shard of Citus keeps a name, as the coordinator decides it: by the hash that Postgres makes
// of the text. What is computed here chooses company and connections only. A row is written where
// the coordinator says, so a map that is out of date costs time and never a write.

export interface Shard {
  readonly id: number;
  /** The hashes that it keeps. */
  readonly least: number;
  readonly most: number;
  /** The group of the node that it is placed on. */
  readonly worker: number;
}

export class Shards {
  readonly #shards: readonly Shard[];

  constructor(shards: readonly Shard[]) {
    this.#shards = [...shards].sort((a, b) => a.least - b.least);
  }

  get workers(): readonly number[] {
    return [...new Set(this.#shards.map(({ worker }) => worker))].sort((a, b) => a - b);
  }

  get count(): number {
    return this.#shards.length;
  }

  shardOf(name: string): Shard {
    const hash = textHash(name);
    let [low, high] = [0, this.#shards.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#shards[middle]?.least ?? 0) <= hash) low = middle;
      else high = middle - 1;
    }
    const shard = this.#shards[low];
    if (shard === undefined) throw new Error("invariant: a distributed table has shards");
    return shard;
  }
}

const encoder = new TextEncoder();
const rotated = (value: number, by: number): number => (value << by) | (value >>> (32 - by));

/**
 * hashtext() of Postgres under the collation "C": Bob Jenkins' lookup3 over the bytes in UTF-8, as
 * a signed number of 32 bits. Postgres keeps it for ever, because hash partitions rest on it.
 */
export function textHash(text: string): number {
  const bytes = encoder.encode(text);
  const seed = (0x9e3779b9 + bytes.length + 3_923_095) | 0;
  let [a, b, c] = [seed, seed, seed];
  let at = 0;
  const word = (from: number): number => byte(from) | (byte(from + 1) << 8) | (byte(from + 2) << 16) | (byte(from + 3) << 24);
  const byte = (from: number): number => bytes[from] ?? 0;
  for (; bytes.length - at >= 12; at += 12) {
    a = (a + word(at)) | 0;
    b = (b + word(at + 4)) | 0;
    c = (c + word(at + 8)) | 0;
    a = ((a - c) ^ rotated(c, 4)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, 6)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, 8)) | 0;
    b = (b + a) | 0;
    a = ((a - c) ^ rotated(c, 16)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, 19)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, 4)) | 0;
    b = (b + a) | 0;
  }
  a = (a + word(at)) | 0;
  b = (b + word(at + 4)) | 0;
  // The lowest byte of the last word is kept for the length.
  c = (c + (word(at + 8) << 8)) | 0;
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  return ((c ^ b) - rotated(b, 24)) | 0;
}
