// A real Postgres that a test can break: databases on one side, faults on the other.
import { SUPERUSER } from "../postgres/data-folder.js";
import { type DatabaseOptions, PostgresDatabases, type TestDatabase } from "../postgres/databases.js";
import type { HostOptions, PostgresHost, PostgresProvider } from "../postgres/provider.js";
import { choosePostgres, type PostgresProviderName } from "./choose-provider.js";

export interface PostgresOptions {
  /** By default `PALISADE_TEST_PROVIDER`, else this machine, else containers. */
  readonly provider?: PostgresProviderName | PostgresProvider;
  /**
   * Whether the bytes of a commit are forced to a disk. `crash()` loses nothing that was
   * acknowledged either way, because the kernel has it; only the crash of a whole machine would. So
   * false, the default, is right for tests, and true for measurements.
   */
  readonly durable?: boolean;
  /** Extra server settings by name, for example `{ max_connections: "20" }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

export function hostOptions({ durable = false, settings = {} }: PostgresOptions): HostOptions {
  return { durable, settings };
}

export class PostgresServer implements AsyncDisposable {
  /** One line that says which Postgres was chosen. */
  readonly description: string;
  readonly #host: PostgresHost;
  readonly #databases: PostgresDatabases;

  constructor(host: PostgresHost, description: string) {
    this.#host = host;
    this.description = description;
    this.#databases = new PostgresDatabases(this.url);
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const { provider, origin } = await choosePostgres(options.provider);
    return new PostgresServer(await provider.start(hostOptions(options)), origin);
  }

  /** The database "postgres" as superuser; the same after every crash and restart. */
  get url(): string {
    return `postgres://${SUPERUSER}@${this.#host.host}:${this.#host.port}/postgres`;
  }

  get port(): number {
    return this.#host.port;
  }

  async createDatabase(options: DatabaseOptions | string = {}): Promise<TestDatabase> {
    return await this.#databases.createDatabase(options);
  }

  async template(name: string, migrate: (url: string) => Promise<unknown>): Promise<void> {
    await this.#databases.template(name, migrate);
  }

  /** SIGKILL to every process of the server in the same instant. */
  async crash(): Promise<void> {
    await this.#host.crash();
  }

  /** On the same port with the same data; shuts down cleanly first if it runs. */
  async restart(): Promise<void> {
    await this.#host.restart();
  }

  /** Stops it, copies its data, and starts it again. Of a server of this machine only. */
  async backUp(): Promise<void> {
    if (this.#host.backUp === undefined) throw new TypeError("only a local server can be backed up: start it with provider local");
    await this.#host.backUp();
  }

  /** Ends it as `crash` does, and starts it with the data of the last backup. */
  async restoreBackup(): Promise<void> {
    if (this.#host.restoreBackup === undefined) throw new TypeError("only a local server has backups: start it with provider local");
    await this.#host.restoreBackup();
  }

  /** Connections stay open and nothing answers, until `resume`. */
  async pause(): Promise<void> {
    await this.#host.pause();
  }

  async resume(): Promise<void> {
    await this.#host.resume();
  }

  async stop(): Promise<void> {
    await this.#host.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}
