// The servers that a demonstration stands on: five independent Redis masters and one Postgres, on free ports of this machine, gone when the program ends.
// Decides nothing about what is shown on them.
import { PostgresServer, RedisFleet } from "@palisade/testkit";

export interface Servers extends AsyncDisposable {
  readonly redis: RedisFleet;
  readonly postgres: PostgresServer;
  readonly startedInMs: number;
}

export async function startServers(): Promise<Servers> {
  const startingAt = performance.now();
  const [redis, postgres] = await both(RedisFleet.start({ nodes: 5, appendfsync: "always" }), PostgresServer.start());
  return {
    redis,
    postgres,
    startedInMs: Math.round(performance.now() - startingAt),
    async [Symbol.asyncDispose]() {
      await Promise.all([redis.stop(), postgres.stop()]);
    },
  };
}

/** If one cannot be had, the other is stopped before the reason is passed on. */
async function both<A extends AsyncDisposable, B extends AsyncDisposable>(first: Promise<A>, second: Promise<B>): Promise<readonly [A, B]> {
  const [a, b] = await Promise.allSettled([first, second]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  for (const one of [a, b]) if (one.status === "fulfilled") await one.value[Symbol.asyncDispose]();
  throw a.status === "rejected" ? a.reason : (b as PromiseRejectedResult).reason;
}
