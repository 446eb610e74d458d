// A real pgbouncer in front of a real Postgres. It forwards whoever connects as the superuser.
import { SUPERUSER } from "../postgres/databases.js";
import { programOf } from "../programs/programs.js";
import { ServerProgram } from "./server-program.js";

export interface PgbouncerOptions {
  /** Of a database behind it. */
  readonly databaseUrl: string;
  /** For how long a client keeps its connection to Postgres. */
  readonly mode: "session" | "transaction" | "statement";
  /** More lines of pgbouncer.ini, by name. */
  readonly settings?: Readonly<Record<string, string>>;
}

export class Pgbouncer extends ServerProgram {
  version = "";

  static async start({ databaseUrl, mode, settings = {} }: PgbouncerOptions): Promise<Pgbouncer> {
    const program = await programOf("pgbouncer");
    const { hostname, port: upstream, password } = new URL(databaseUrl);
    const secret = password === "" ? "" : ` password=${decodeURIComponent(password)}`;
    const common = { listen_addr: "127.0.0.1", unix_socket_dir: "", auth_type: "any", pool_mode: mode, default_pool_size: "50" };
    const launched = await ServerProgram.launch(
      program,
      ({ port }) => {
        const lines = Object.entries({ ...common, listen_port: port, ...settings }).map(([name, value]) => `${name} = ${value}`);
        const database = `* = host=${hostname} port=${upstream} user=${SUPERUSER}${secret}`;
        return { "pgbouncer.ini": ["[databases]", database, "[pgbouncer]", ...lines, ""].join("\n") };
      },
      ({ folder }) => ({
        name: "pgbouncer",
        args: [`${folder}/pgbouncer.ini`],
        isReady: (child) => child.says(/process up/).then(() => true),
      }),
    );
    return Object.assign(new Pgbouncer(...launched), { version: program.version.replace(/^\S+ /, "") });
  }

  /** The same database, through it. */
  urlOf(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.hostname = this.host;
    url.port = String(this.port);
    return url.href;
  }
}
