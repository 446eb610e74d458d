// Chooses the provider that runs the Redis or the Postgres servers; none is started here. Where no
// provider is named, that is this machine, or containers where it has no server to run and an
// engine answers. Containers never replace a server that was asked for by its path.
import type { PostgresProvider } from "../postgres/provider.js";
import type { ProviderName, RedisProvider } from "../redis/provider.js";
import { CITUS_VARIABLE } from "../resolve/citus.js";

export type PostgresProviderName = "local" | "docker";

/** How each provider is made; loaded on demand, so that an unused one costs nothing. */
type Providers<Name extends string, Provider> = Readonly<Record<Name, () => Promise<Provider>>>;

const redisProviders: Providers<ProviderName, RedisProvider> = {
  local: async () => (await import("../redis/local-server.js")).localRedis,
  docker: async () => (await import("../docker/docker-redis.js")).dockerRedis,
  wasm: async () => (await import("../redis/local-server.js")).wasmRedis,
};

const postgresProviders: Providers<PostgresProviderName, PostgresProvider> = {
  local: async () => (await import("../postgres/local-postgres.js")).localPostgres,
  docker: async () => (await import("../docker/docker-postgres.js")).dockerPostgres,
};

const citusProviders: Providers<PostgresProviderName, PostgresProvider> = {
  local: async () => (await import("../postgres/local-postgres.js")).localCitus,
  docker: async () => (await import("../docker/docker-postgres.js")).dockerCitus,
};

/** Where to look; the parameter exists so that every branch can be tested on one machine. */
export interface World<Name extends string, Provider> {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly providers: Providers<Name, Provider>;
}

export interface Choice<Provider> {
  readonly provider: Provider;
  /** One line for a human: what runs, where it comes from, and why it is not the usual. */
  readonly origin: string;
}

interface Wish<Provider> {
  readonly provider?: string | Provider | undefined;
  /** What will do when this machine has no server to run and no other provider was asked for. */
  readonly fallback?: "wasm" | undefined;
}

/** As given, else by `PALISADE_TEST_PROVIDER`, else local, else the fallback, else containers. */
export function chooseRedis(
  wish: Wish<RedisProvider> & { readonly provider?: ProviderName | RedisProvider },
  world: World<ProviderName, RedisProvider> = { environment: process.env, providers: redisProviders },
): Promise<Choice<RedisProvider>> {
  return choose({ kind: "Redis", pathVariable: "REDIS_SERVER_BIN", ...wish }, world);
}

/** As given, else by `PALISADE_TEST_PROVIDER`, else local, else containers. */
export function choosePostgres(
  provider: PostgresProviderName | PostgresProvider | undefined,
  world: World<PostgresProviderName, PostgresProvider> = { environment: process.env, providers: postgresProviders },
): Promise<Choice<PostgresProvider>> {
  return choose({ kind: "Postgres", pathVariable: "PALISADE_POSTGRES_BIN", provider }, world);
}

/** The same for servers that have the extension Citus. */
export function chooseCitus(
  provider: PostgresProviderName | PostgresProvider | undefined,
  world: World<PostgresProviderName, PostgresProvider> = { environment: process.env, providers: citusProviders },
): Promise<Choice<PostgresProvider>> {
  return choose({ kind: "Citus", pathVariable: CITUS_VARIABLE, provider }, world);
}

interface Describable {
  /** Fails with what would help, when it can run nothing. */
  describe(): Promise<string>;
}

interface Asked<Provider> extends Wish<Provider> {
  readonly kind: string;
  /** The setting that asks for a server of this machine by its path. */
  readonly pathVariable: string;
}

async function choose<Provider extends Describable>(
  { kind, pathVariable, provider, fallback }: Asked<Provider>,
  { environment, providers }: World<string, Provider>,
): Promise<Choice<Provider>> {
  const wanted = provider ?? (environment.PALISADE_TEST_PROVIDER || undefined);
  if (typeof wanted === "string") return await described(await named(kind, wanted, providers));
  if (wanted !== undefined) return await described(wanted);
  try {
    return await described(await named(kind, "local", providers));
  } catch (cause) {
    const { message } = cause as Error;
    if (fallback !== undefined) {
      process.stderr.write(`${message}\nUntil then this runs on Valkey in WebAssembly, which keeps nothing on disk.\n`);
      return await described(await named(kind, fallback, providers));
    }
    if (environment[pathVariable]) throw cause;
    return await inContainers(await named(kind, "docker", providers), cause as Error);
  }
}

async function named<Provider>(kind: string, name: string, among: Providers<string, Provider>): Promise<Provider> {
  const make = Object.hasOwn(among, name) ? among[name] : undefined;
  if (make !== undefined) return await make();
  const known = Object.keys(among).join(", ");
  throw new RangeError(`no ${kind} provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${known}`);
}

async function described<Provider extends Describable>(provider: Provider): Promise<Choice<Provider>> {
  return { provider, origin: await provider.describe() };
}

async function inContainers<Provider extends Describable>(provider: Provider, cause: Error): Promise<Choice<Provider>> {
  try {
    const why = cause.message.replace(/[.:]? Tried:.*/s, "");
    return { provider, origin: `${await provider.describe()}, because ${why}` };
  } catch (alsoMissing) {
    throw new Error(`${cause.message}\nNor can it run in a container: ${(alsoMissing as Error).message}`, { cause });
  }
}
