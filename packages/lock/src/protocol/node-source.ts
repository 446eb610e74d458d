// What a caller gives for one node.
import type { Cluster, Redis, RedisOptions } from "ioredis";

/**
 * redis:// or rediss:// URL, ioredis options, or the user's own instance (which is duplicated,
 * never used or closed).
 */
export type NodeSource = string | RedisOptions | Redis | Cluster;
