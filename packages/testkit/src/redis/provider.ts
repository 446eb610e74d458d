// What a fleet needs of a provider: the servers it runs, without proxies.

export type AppendFsync = "always" | "everysec" | "no";

export interface RedisServerSpec {
  readonly name: string;
  readonly appendfsync: AppendFsync;
  /** More directives of redis.conf, which win over the testkit's own. */
  readonly config: Readonly<Record<string, string>>;
  /** "shiftable": `shiftClock` can move the server's wall clock, where this machine can do it. */
  readonly clock: "shiftable" | "real";
  /** Where it must listen; any free port when absent. For local servers only. */
  readonly port?: number | undefined;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** One server, alive or killed, paused or not. Where it listens may change with a restart. */
export interface RedisServer extends Address {
  /** Where another server of the same provider finds it, while it runs. */
  amongServers(): Promise<Address>;
  /** Of the server's process on this machine; undefined when it is dead or lives elsewhere. */
  readonly pid: number | undefined;
  kill(): Promise<void>;
  /** Kills it first if it runs. */
  restart(options: { readonly memory: "kept" | "forgotten" }): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Moves the server's wall clock by so much from where it is now. */
  shiftClock(byMs: number): Promise<void>;
  /** Ends it and removes all it left. */
  stop(): Promise<void>;
}

export interface RedisProvider {
  readonly name: ProviderName;
  /** What runs and where it comes from, in one line. Throws what helps when nothing can run. */
  describe(): Promise<string>;
  start(spec: RedisServerSpec): Promise<RedisServer>;
}

export type ProviderName = "local" | "docker" | "wasm";
