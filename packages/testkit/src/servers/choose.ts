// Chooses the provider that runs the Redis or the Postgres servers; none is started here. Where no
// provider is named, that is this machine, or containers where it has no server to run and an
// engine answers. Containers never replace a server that was asked for by its path.
import { dockerCitus, dockerPostgres, dockerRedis } from "../docker.js";
import { localCitus, localPostgres, type PostgresProvider } from "../postgres/local.js";
import { CITUS_VARIABLE } from "../programs/postgres.js";
import { localRedis, type RedisProvider, wasmRedis } from "../redis/server.js";

export type PostgresProviderName = "local" | "docker";

interface Describable {
  /** Fails with what would help, when it can run nothing. */
  describe(): Promise<string>;
}

interface Choice<Provider> {
  readonly provider: Provider;
  /** One line for a human: what runs, where it comes from, and why it is not the usual. */
  readonly origin: string;
}

interface RedisWish {
  readonly provider?: RedisProvider["name"] | RedisProvider;
  /** What will do when this machine has no server to run and no other provider was asked for. */
  readonly fallback?: "wasm" | undefined;
}

const redisProviders = { local: localRedis, docker: dockerRedis, wasm: wasmRedis };

/** As given, else by `PALISADE_TEST_PROVIDER`, else local, else the fallback, else containers. */
export function chooseRedis({ provider, fallback }: RedisWish, among = redisProviders, env = process.env): Promise<Choice<RedisProvider>> {
  return choose({ kind: "Redis", path: env.REDIS_SERVER_BIN, wanted: provider ?? env.PALISADE_TEST_PROVIDER, fallback }, among);
}

type PostgresWish = PostgresProviderName | PostgresProvider | undefined;

/** As given, else by `PALISADE_TEST_PROVIDER`, else local, else containers. */
export function choosePostgres(
  provider: PostgresWish,
  among = { local: localPostgres, docker: dockerPostgres },
  env = process.env,
): Promise<Choice<PostgresProvider>> {
  return choose({ kind: "Postgres", path: env.PALISADE_POSTGRES_BIN, wanted: provider ?? env.PALISADE_TEST_PROVIDER }, among);
}

/** The same for servers that have the extension Citus. */
export function chooseCitus(provider: PostgresWish): Promise<Choice<PostgresProvider>> {
  const { [CITUS_VARIABLE]: path, PALISADE_TEST_PROVIDER } = process.env;
  return choose({ kind: "Citus", path, wanted: provider ?? PALISADE_TEST_PROVIDER }, { local: localCitus, docker: dockerCitus });
}

interface Wish<Provider> {
  readonly kind: string;
  /** Asks for a server of this machine. */
  readonly path: string | undefined;
  readonly wanted: string | Provider | undefined;
  readonly fallback?: string | undefined;
}

async function choose<Provider extends Describable>(
  { kind, path, wanted, fallback }: Wish<Provider>,
  among: Readonly<Record<string, Provider>>,
): Promise<Choice<Provider>> {
  const described = async (provider: Provider): Promise<Choice<Provider>> => ({ provider, origin: await provider.describe() });
  const named = (name: string): Provider => {
    const provider = Object.hasOwn(among, name) ? among[name] : undefined;
    if (provider !== undefined) return provider;
    const known = Object.keys(among).join(", ");
    throw new RangeError(`no ${kind} provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${known}`);
  };
  if (wanted) return await described(typeof wanted === "string" ? named(wanted) : wanted);
  try {
    return await described(named("local"));
  } catch (cause) {
    const { message } = cause as Error;
    if (fallback !== undefined) {
      process.stderr.write(`${message}\nUntil then this runs on Valkey in WebAssembly, which keeps nothing on disk.\n`);
      return await described(named(fallback));
    }
    if (path) throw cause;
    const why = message.replace(/[.:]? Tried:.*/s, "");
    return await described(named("docker")).then(
      ({ provider, origin }) => ({ provider, origin: `${origin}, because ${why}` }),
      (alsoMissing: Error) => {
        throw new Error(`${message}\nNor can it run in a container: ${alsoMissing.message}`, { cause });
      },
    );
  }
}
