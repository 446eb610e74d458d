// What a fleet needs from whoever runs its servers, and the choice of who that is. It must not know about proxies.

export type AppendFsync = "always" | "everysec" | "no";

export interface RedisServerSpec {
  readonly name: string;
  readonly appendfsync: AppendFsync;
  /** More directives of redis.conf, which win over the testkit's own. */
  readonly config: Readonly<Record<string, string>>;
  /** "shiftable" where this machine can do it: the server's wall clock can be moved by `shiftClock`. */
  readonly clock: "shiftable" | "real";
}

/** One server, alive or killed, paused or not. Where it listens may change with a restart. */
export interface RedisServer {
  readonly host: string;
  readonly port: number;
  /** Of the server's process on this machine; undefined when it is dead or lives elsewhere. */
  readonly pid: number | undefined;
  kill(): Promise<void>;
  /** Kills it first if it runs. */
  restart(options: { readonly memory: "kept" | "forgotten" }): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Moves the server's wall clock by so much from where it is now. */
  shiftClock(byMs: number): Promise<void>;
  /** The end of its log, for error messages. */
  lastLines(): Promise<readonly string[]>;
  /** Ends it and removes all it left. */
  stop(): Promise<void>;
}

export interface RedisProvider {
  readonly name: ProviderName;
  /** One line for a human: what runs, and where it comes from. Fails with what would help, when nothing can be run. */
  describe(): Promise<string>;
  start(spec: RedisServerSpec): Promise<RedisServer>;
}

export type ProviderName = "local" | "docker" | "wasm";

/** How each provider is made; loaded on demand, so that nobody pays for one that is not used. */
const providers: Readonly<Partial<Record<ProviderName, () => Promise<RedisProvider>>>> = {
  local: async () => (await import("./local-provider.js")).localRedis,
  docker: async () => (await import("../docker/docker-redis.js")).dockerRedis,
  wasm: async () => (await import("./local-provider.js")).wasmRedis,
};

/** The provider given, else the one asked for by name, else by `PALISADE_TEST_PROVIDER`, else the local one. */
export async function chooseProvider(wanted: ProviderName | RedisProvider | undefined): Promise<RedisProvider> {
  if (typeof wanted === "object") return wanted;
  const name = wanted ?? (process.env.PALISADE_TEST_PROVIDER || "local");
  const make = Object.hasOwn(providers, name) ? providers[name as ProviderName] : undefined;
  if (make === undefined) {
    throw new RangeError(
      `no Redis provider is called ${JSON.stringify(name)} (PALISADE_TEST_PROVIDER); there are: ${Object.keys(providers).join(", ")}`,
    );
  }
  return make();
}
