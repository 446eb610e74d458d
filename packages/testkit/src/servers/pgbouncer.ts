// A real pgbouncer in front of a real Postgres. It forwards whoever connects as the superuser.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SUPERUSER } from "../postgres/local.js";
import { scratchFolder } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import type { Child } from "../process/program.js";
import { programOf } from "../programs/programs.js";
import { handOver, startProgram } from "./server-program.js";

export interface PgbouncerOptions {
  /** Of a database behind it. */
  readonly databaseUrl: string;
  /** For how long a client keeps its connection to Postgres. */
  readonly mode: "session" | "transaction" | "statement";
  /** More lines of pgbouncer.ini, by name. */
  readonly settings?: Readonly<Record<string, string>>;
}

const PORT_ATTEMPTS = 10;

export class Pgbouncer implements AsyncDisposable {
  readonly version: string;
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #child: Child;
  readonly #folder: string;

  private constructor(version: string, running: { readonly child: Child; readonly port: number; readonly folder: string }) {
    this.version = version;
    this.#child = running.child;
    this.port = running.port;
    this.#folder = running.folder;
  }

  static async start(options: PgbouncerOptions): Promise<Pgbouncer> {
    const program = await programOf("pgbouncer");
    const folder = scratchFolder("pgbouncer", "/tmp");
    const file = join(folder, "pgbouncer.ini");
    for (let attempt = 1; ; attempt += 1) {
      const port = await takePort();
      await writeFile(file, configuration(options, port), { mode: 0o600 });
      await handOver(program, folder, [file]);
      try {
        const child = await startProgram(program, {
          name: "pgbouncer",
          args: [file],
          isReady: (started) => started.says(/process up/).then(() => true),
        });
        return new Pgbouncer(program.version.replace(/^\S+ /, ""), { child, port, folder });
      } catch (cause) {
        returnPort(port);
        if (attempt === PORT_ATTEMPTS || !(cause as Error).message.includes("in use")) throw cause;
      }
    }
  }

  /** The same database, through it. */
  urlOf(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.hostname = "127.0.0.1";
    url.port = String(this.port);
    return url.href;
  }

  async stop(): Promise<void> {
    await this.#child.kill();
    returnPort(this.port);
    await rm(this.#folder, { recursive: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

function configuration({ databaseUrl, mode, settings = {} }: PgbouncerOptions, port: number): string {
  const { hostname, port: upstream, password } = new URL(databaseUrl);
  const secret = password === "" ? "" : ` password=${decodeURIComponent(password)}`;
  const lines = {
    listen_addr: "127.0.0.1",
    listen_port: String(port),
    unix_socket_dir: "",
    auth_type: "any",
    pool_mode: mode,
    default_pool_size: "50",
    ...settings,
  };
  const written = Object.entries(lines).map(([name, value]) => `${name} = ${value}`);
  return ["[databases]", `* = host=${hostname} port=${upstream} user=${SUPERUSER}${secret}`, "[pgbouncer]", ...written, ""].join("\n");
}
