// A link made with ioredis: which of its options, and why each. A user's own instance is
// duplicated, because its queues, retries and subscriptions are made for other work.

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { Command, Redis } from "ioredis";
import type { Client, NodeSource } from "../options/node-source.js";
import { clientOf, isCluster, isInstance } from "../options/node-source.js";
import type { Clock } from "../platform/clock.js";
import { bulkString, type EncodedCall } from "./batch.js";
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
  const client = openClient(source, settings);
  const cluster = isCluster(client) ? client : undefined;
  // Beside the client, not in it: an ioredis instance that is given more members becomes several
  // times as slow.
  return {
    isCluster: cluster !== undefined,
    on: (event: string, told: (...args: never[]) => void) => client.on(event, told as (...args: unknown[]) => void),
    connect: () => client.connect(),
    send(sha: string, call: EncodedCall, record: string | undefined): Promise<unknown> {
      // A cluster finds the server by the keys, so ioredis needs to see them.
      if (cluster !== undefined) return cluster.evalsha(sha, call.keyCount, ...call.words);
      return client.sendCommand(new EncodedCommand(sha, call, record)) as Promise<unknown>;
    },
    eval: (script, keyCount, ...text) => client.eval(script, keyCount, ...text),
    call: (command, ...args) => client.call(command, ...args),
    subscribe: (...channels) => client.subscribe(...channels),
    unsubscribe: (...channels) => client.unsubscribe(...channels),
    breakOff() {
      if (isCluster(client)) client.disconnect(true);
      else discard(client.stream);
    },
    disconnect: () => client.disconnect(),
  };
}

/** EVALSHA of a call that was encoded once for all nodes. */
class EncodedCommand extends Command {
  readonly #sha: string;
  readonly #call: EncodedCall;
  readonly #record: string | undefined;

  constructor(sha: string, call: EncodedCall, record: string | undefined) {
    super("evalsha", [], { replyEncoding: "utf8" });
    this.#sha = sha;
    this.#call = call;
    this.#record = record;
  }

  override toWritable(): string | Buffer {
    const { keyCount, words, wire } = this.#call;
    const record = this.#record === undefined ? "" : bulkString(this.#record);
    const size = words.length + (record === "" ? 3 : 4);
    const head = `*${size}\r\n$7\r\nEVALSHA\r\n${bulkString(this.#sha)}${bulkString(String(keyCount))}`;
    return typeof wire === "string" ? head + wire + record : Buffer.concat([Buffer.from(head), wire, Buffer.from(record)]);
  }
}

/** With a reset, where the socket allows it, so that the kernel stops delivering an old grant. */
function discard(stream: Socket | TLSSocket): void {
  // A socket whose end is on the way cannot be reset; Node would leave it open, and the process
  // could not exit by itself.
  const isEnding = stream.writableEnded && !stream.writableFinished;
  if ("encrypted" in stream || stream.connecting || stream.pending || isEnding) stream.destroy();
  else stream.resetAndDestroy();
}

export function openClient(source: NodeSource, settings: ConnectSettings): Client {
  const ours = options(settings);
  if (typeof source === "string") return new Redis(source, ours);
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
