// The servers that a stage stands on: five independent Redis masters and one Postgres, on free ports of this machine, except where others are given.
// Decides nothing about what is shown on them.
import { PostgresServer, RedisFleet } from "@palisade/testkit";

export interface ServerAddresses {
  readonly redisUrls?: readonly string[] | undefined;
  readonly databaseUrl?: string | undefined;
}

export interface Servers extends AsyncDisposable {
  readonly redisUrls: readonly string[];
  readonly databaseUrl: string;
  /** One line for each kind. */
  readonly description: readonly string[];
}

export async function startServers(given: ServerAddresses = {}): Promise<Servers> {
  const [redis, postgres] = await both(
    // Where no Redis can be had, the fallback lets the demonstration be seen all the same, and says so.
    given.redisUrls === undefined ? RedisFleet.start({ nodes: 5, appendfsync: "always", fallback: "wasm" }) : undefined,
    given.databaseUrl === undefined ? PostgresServer.start() : undefined,
  );
  const redisUrls = given.redisUrls ?? redis?.urls ?? [];
  return {
    redisUrls,
    databaseUrl: given.databaseUrl ?? postgres?.url ?? "",
    description: [redis?.description ?? `${redisUrls.length} × Redis, given`, postgres?.description ?? "Postgres, given"],
    async [Symbol.asyncDispose]() {
      await Promise.all([redis?.stop(), postgres?.stop()]);
    },
  };
}

/** If one cannot be had, the other is stopped before the reason is passed on. */
async function both<A extends AsyncDisposable, B extends AsyncDisposable>(
  first: Promise<A> | undefined,
  second: Promise<B> | undefined,
): Promise<readonly [A | undefined, B | undefined]> {
  const [a, b] = await Promise.allSettled([first, second]);
  if (a.status === "fulfilled" && b.status === "fulfilled") return [a.value, b.value];
  for (const one of [a, b]) if (one.status === "fulfilled") await one.value?.[Symbol.asyncDispose]();
  const reason: unknown = a.status === "rejected" ? a.reason : (b as PromiseRejectedResult).reason;
  // Five nodes that fail for one reason are one sentence.
  const [one] = reason instanceof AggregateError ? (reason.errors as readonly Error[]) : [reason];
  throw new Error(`The servers do not come up: ${one instanceof Error ? one.message : String(one)}`, { cause: reason });
}
