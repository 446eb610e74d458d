// What a Postgres server needs of a provider: processes that can be broken, without databases.

export interface HostOptions {
  /** Durable: commits are forced to the disk, which only a crash of the whole machine needs. */
  readonly durable: boolean;
  /** More settings of postgresql.conf, which win over the testkit's own. */
  readonly settings: Readonly<Record<string, string>>;
  /** Where it must listen; any free port when absent. For local servers only. */
  readonly port?: number | undefined;
}

export interface Address {
  readonly host: string;
  readonly port: number;
}

/** One server that can be broken on purpose. Its address stays the same through restarts. */
export interface PostgresHost extends Address {
  /** Every process of the server dies at once. Nothing is flushed, no client is told. */
  crash(): Promise<void>;
  /** Starts it again with the same data; one that is running is shut down cleanly first. */
  restart(): Promise<void>;
  /**
   * Local servers only. `backUp` stops the server, copies its data and starts it; `restoreBackup`
   * ends it as `crash` does, and starts it with that copy.
   */
  backUp?(): Promise<void>;
  restoreBackup?(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends it and removes all it left. */
  stop(): Promise<void>;
}

export interface PostgresProvider {
  /** Which Postgres runs and where it comes from, in one line. Throws what would help. */
  describe(): Promise<string>;
  start(options: HostOptions): Promise<PostgresHost>;
  /**
   * A standby that streams from `upstream`, where a primary of this provider answers that has not
   * been written to since its start. It is ready for reads when this resolves, and introduces
   * itself as `standbyName`.
   */
  startStandby(options: HostOptions, upstream: Address): Promise<PostgresHost>;
}

/** How a standby is called in the primary's `synchronous_standby_names`. */
export const STANDBY_NAME = "standby";
