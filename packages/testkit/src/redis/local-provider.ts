// Runs each node as a redis-server process of this machine. It must not decide which binary: the resolver does.
import { describeRedis, resolveRedis } from "../resolve/redis.js";
import { LocalRedisServer } from "./local-server.js";
import type { RedisProvider } from "./provider.js";

export const localRedis: RedisProvider = {
  name: "local",
  describe: async () => describeRedis(await resolveRedis()),
  start: async (spec) => LocalRedisServer.start(await resolveRedis(), spec),
};
