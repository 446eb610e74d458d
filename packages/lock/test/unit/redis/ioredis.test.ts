// The options under which a connection is opened, whatever the user's own are: what ioredis would
// keep, send again or retry by itself leaves locks without a holder.
import type { Redis, RedisOptions } from "ioredis";
import { expect, test } from "vitest";
import { openClient } from "../../../src/redis/link.js";
import { ManualClock } from "../manual-clock.js";

const settings = { connectTimeoutMs: 2_000, connectionName: "palisade:ns", clock: new ManualClock() };
const careless = {
  enableOfflineQueue: true,
  autoResendUnfulfilledCommands: true,
  maxRetriesPerRequest: null,
  reconnectOnError: () => true,
  commandTimeout: 7,
  enableAutoPipelining: true,
  keyPrefix: "mine:",
  lazyConnect: true,
} as const satisfies RedisOptions;

const ways = {
  "a URL": "redis://a:1",
  "a URL with options":
    "redis://a:1?enableOfflineQueue=true&autoResendUnfulfilledCommands=true&maxRetriesPerRequest=9&reconnectOnError=1&enableAutoPipelining=true&lazyConnect=&monitor=true&keyPrefix=mine",
  options: { host: "a", port: 1, ...careless },
} as const;

test.each(Object.entries(ways))("%s is opened so that no grant is kept for later, sent twice or given another name", (_, source) => {
  const { options } = openClient(source, settings) as Redis;
  expect(options).toMatchObject({
    host: "a",
    port: 1,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    reconnectOnError: null,
    enableAutoPipelining: false,
    keyPrefix: "",
    lazyConnect: true,
    monitor: false,
    connectTimeout: 2_000,
    connectionName: "palisade:ns",
  });
  expect(options.commandTimeout).toBe(undefined);
});

test("the next connection is tried soon, then less often, and not in step with others", () => {
  const { options } = openClient("redis://a:1", settings) as Redis;
  const delays = [1, 2, 3, 8, 100].map((times) => options.retryStrategy?.(times));
  expect(delays).toEqual([15, 30, 60, 1_500, 1_500]);
  settings.clock.chance = 0;
  expect(options.retryStrategy?.(1)).toBe(10);
});
