// Chooses the provider that runs the Redis servers; none is started here.

import type { ProviderName, RedisProvider } from "../redis/provider.js";
import { type Choice, onlyWay } from "./only-way.js";

type Providers = Readonly<Record<ProviderName, () => Promise<RedisProvider>>>;

/** How each provider is made; loaded on demand, so that an unused one costs nothing. */
const providers: Providers = {
  local: async () => (await import("../redis/local-provider.js")).localRedis,
  docker: async () => (await import("../docker/docker-redis.js")).dockerRedis,
  wasm: async () => (await import("../redis/local-provider.js")).wasmRedis,
};

export interface Wish {
  readonly provider?: ProviderName | RedisProvider;
  /**
   * What will do when this machine has no Redis server to run and no other provider was asked for.
   */
  readonly fallback?: "wasm";
}

/** Where to look; the parameter exists so that every branch can be tested on one machine. */
export interface World {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly providers: Providers;
}

/** As given, else by `PALISADE_TEST_PROVIDER`, else local, else the fallback, else containers. */
export async function chooseProvider(
  { provider, fallback }: Wish,
  world: World = { environment: process.env, providers },
): Promise<Choice<RedisProvider>> {
  const wanted = provider ?? (world.environment.PALISADE_TEST_PROVIDER || undefined);
  if (wanted !== undefined) {
    const given = typeof wanted === "object" ? wanted : await named(wanted, world.providers);
    return { provider: given, origin: await given.describe() };
  }
  if (fallback === undefined) return await onlyWay({ ...world.providers, asked: world.environment.REDIS_SERVER_BIN });
  const local = await world.providers.local();
  try {
    return { provider: local, origin: await local.describe() };
  } catch (cause) {
    process.stderr.write(`${(cause as Error).message}\nUntil then this runs on Valkey in WebAssembly, which keeps nothing on disk.\n`);
    const instead = await world.providers[fallback]();
    return { provider: instead, origin: await instead.describe() };
  }
}

async function named(name: string, among: Providers): Promise<RedisProvider> {
  if (Object.hasOwn(among, name)) return await among[name as ProviderName]();
  throw new RangeError(
    `no Redis provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${Object.keys(among).join(", ")}`,
  );
}
