// What a caller gives for one node.
import type { RedisOptions } from "ioredis";

/**
 * An instance of ioredis 4 or newer: a client of one server or of a cluster. Described by what the
 * lock needs of it, since the caller's copy of ioredis may be of another version than the lock's.
 */
export interface IoredisInstance {
  connect(...given: never[]): Promise<unknown>;
  disconnect(...given: never[]): void;
  duplicate(...given: never[]): unknown;
}

/**
 * redis:// or rediss:// URL, ioredis options, or the user's own instance (which is duplicated,
 * never used or closed). A `keyPrefix` is refused: what keeps keys apart is the namespace.
 */
export type NodeSource = string | RedisOptions | IoredisInstance;
