// A link made with ioredis: which of its options, and why each. A user's own instance is
// duplicated, because its queues, retries and subscriptions are made for other work.

import { Redis } from "ioredis";
import type { Client, NodeSource } from "../options/node-source.js";
import { clientOf, isCluster, isInstance } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import { ClientLink } from "./client-link.js";
import type { ConnectSettings, Link } from "./link.js";

const FIRST_RETRY_MS = 20;
const LAST_RETRY_MS = 2_000;
const KEEP_ALIVE_MS = 10_000;
const HALF_CLOSE_MS = 100;

function options({ connectTimeoutMs, connectionName, clock }: ConnectSettings) {
  return {
    // Our listeners are attached first.
    lazyConnect: true,
    // Flat replies are enough, and HELLO is one more command that an ACL would have to allow.
    protocol: 2,
    replyMapping: "legacy",
    stringNumbers: false,
    // A grant that waits in a queue and is executed after a reconnect would lock the resource for a
    // whole ttl without a holder.
    enableOfflineQueue: false,
    // The same, for a grant that was on its way when the connection was lost.
    autoResendUnfulfilledCommands: false,
    // Fail what was on its way with the connection, not some reconnects later.
    maxRetriesPerRequest: 0,
    // Would turn a READONLY reply into a reconnect in the middle of other requests.
    reconnectOnError: null,
    connectTimeout: connectTimeoutMs,
    // The pipeline has one timer for all requests. A timeout must leave the connection open: a
    // release sent later has to stay behind the grant.
    commandTimeout: undefined,
    socketTimeout: undefined,
    // The first request on every connection is the node's status, which fails with LOADING if it is
    // loading.
    enableReadyCheck: false,
    retryStrategy: (times: number) => retryDelayMs(times, clock),
    // How long a connection that is being closed may stay half-open.
    disconnectTimeout: HALF_CLOSE_MS,
    keepAlive: KEEP_ALIVE_MS,
    noDelay: true,
    connectionName,
    // Two more commands per connection, unknown to older servers.
    disableClientInfo: true,
    autoResubscribe: false,
    enableAutoPipelining: false,
    readOnly: false,
    monitor: false,
    // Key names carry their namespace already, and channels are not prefixed.
    keyPrefix: "",
  } as const;
}

/**
 * Exponential from 20 ms to 2 s, half of it at random: a fleet of lockers must not come back in
 * step.
 */
export function retryDelayMs(times: number, clock: Clock): number {
  const full = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(times - 1, 10));
  return full / 2 + (full / 2) * clock.random();
}

/** A link to the source, not connected yet. */
export function openLink(source: NodeSource, settings: ConnectSettings): Link {
  return new ClientLink(openClient(source, settings));
}

export function openClient(source: NodeSource, settings: ConnectSettings): Client {
  const ours = options(settings);
  // Ours first: of options that are given twice, also by a URL, ioredis takes the first.
  if (typeof source === "string") return Reflect.construct(Redis, [ours, source]) as Redis;
  if (!isInstance(source)) return new Redis({ ...source, ...ours });
  const client = clientOf(source);
  if (!isCluster(client)) return client.duplicate(ours);
  const { retryStrategy, enableOfflineQueue, readOnly, lazyConnect, keyPrefix, enableAutoPipelining, ...redisOptions } = ours;
  return client.duplicate([], {
    // Given twice: an empty prefix of the cluster gives way to that of its connections.
    redisOptions: { ...redisOptions, keyPrefix },
    enableOfflineQueue,
    lazyConnect,
    keyPrefix,
    enableAutoPipelining,
    clusterRetryStrategy: retryStrategy,
    // Grants fail instead of being kept until the cluster has recovered.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    maxRedirections: 3,
    scaleReads: "master",
  });
}
