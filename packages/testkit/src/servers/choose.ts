// Chooses the provider that runs the Redis or the Postgres servers; none is started here. Where no
// provider is named, that is an engine for containers that answers and has the image, else this
// machine. Containers never replace a server that was asked for by its path.
import { dockerCitus, dockerPostgres, dockerRedis, hasEngineSocket } from "../docker.js";
import type { PostgresProvider } from "../postgres/databases.js";
import { localCitus, localPostgres } from "../postgres/local.js";
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

interface Wish<Provider> {
  readonly kind: "Redis" | "Postgres" | "Citus";
  /** Asks for a server of this machine by its path. */
  readonly path: string | undefined;
  readonly provider: string | Provider | undefined;
  /** What will do when no other server is to be had. */
  readonly fallback?: "wasm" | undefined;
}

/** As given, else by `PALISADE_TEST_PROVIDER`, else containers, else local, else the fallback. */
export function chooseRedis({ provider, fallback }: Pick<Wish<RedisProvider>, "provider" | "fallback">): Promise<Choice<RedisProvider>> {
  const wish = { kind: "Redis", path: process.env.REDIS_SERVER_BIN, provider, fallback } as const;
  return choose(wish, { local: localRedis, docker: dockerRedis, wasm: wasmRedis });
}

export function choosePostgres(provider: PostgresProviderName | PostgresProvider | undefined): Promise<Choice<PostgresProvider>> {
  const wish = { kind: "Postgres", path: process.env.PALISADE_POSTGRES_BIN, provider } as const;
  return choose(wish, { local: localPostgres, docker: dockerPostgres });
}

/** Servers that have the extension Citus. */
export function chooseCitus(provider: PostgresProviderName | PostgresProvider | undefined): Promise<Choice<PostgresProvider>> {
  return choose({ kind: "Citus", path: process.env[CITUS_VARIABLE], provider }, { local: localCitus, docker: dockerCitus });
}

/** Providers that could not be had. An engine without a way to the registry takes its time, so each is asked once. */
const refusals = new WeakMap<Describable, string>();

export async function choose<Provider extends Describable>(
  { kind, path, provider, fallback }: Wish<Provider>,
  among: Readonly<Record<string, Provider>>,
  env = process.env,
): Promise<Choice<Provider>> {
  const described = async (one: Provider): Promise<Choice<Provider>> => ({ provider: one, origin: await one.describe() });
  const named = (name: string): Provider => {
    const one = Object.hasOwn(among, name) ? among[name] : undefined;
    if (one !== undefined) return one;
    const known = Object.keys(among).join(", ");
    throw new RangeError(`no ${kind} provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${known}`);
  };
  const wanted = provider ?? env.PALISADE_TEST_PROVIDER;
  if (wanted) return await described(typeof wanted === "string" ? named(wanted) : wanted);
  const docker = named("docker");
  if (!path && hasEngineSocket(env) && !refusals.has(docker)) {
    try {
      return await described(docker);
    } catch (cause) {
      refusals.set(docker, (cause as Error).message);
      process.stderr.write(
        `${kind} does not run in containers: ${(cause as Error).message}\nA server of this machine takes their place.\n`,
      );
    }
  }
  return await described(named("local")).catch(async (cause: Error) => {
    if (fallback === undefined) {
      const refusal = refusals.get(docker);
      throw refusal === undefined ? cause : new Error(`${cause.message}\nNor can it run in a container: ${refusal}`, { cause });
    }
    process.stderr.write(`${cause.message}\nUntil then this runs on Valkey in WebAssembly, which keeps nothing on disk.\n`);
    return await described(named(fallback));
  });
}
