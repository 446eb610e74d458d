// What a provider of Postgres servers has to offer, whether it runs processes or containers. It decides nothing by itself.

export interface HostOptions {
  /** Durable servers force every commit to the disk; the others only say so, which is faster and enough where no crash of the machine is played. */
  readonly durable: boolean;
  /** Extra server settings, by name. They win over the defaults. */
  readonly settings: Readonly<Record<string, string>>;
}

/** One server that can be broken on purpose. Its address stays the same through crashes and restarts. */
export interface PostgresHost {
  readonly host: string;
  readonly port: number;
  /** One line that says which Postgres this is. */
  readonly notice: string;
  /** Every process of the server dies at once. Nothing is flushed, nobody is told. */
  crash(): Promise<void>;
  /** Starts it again with the same data; one that is running is shut down cleanly first. */
  restart(): Promise<void>;
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends the server and throws its data away. */
  stop(): Promise<void>;
}

export interface PostgresProvider {
  start(options: HostOptions): Promise<PostgresHost>;
}
