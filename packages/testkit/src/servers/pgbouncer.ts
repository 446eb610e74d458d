// A real pgbouncer in front of a real Postgres. It forwards whoever connects as the superuser.
import { chmod, chown, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SUPERUSER } from "../postgres/data-folder.js";
import { type Child, startChild } from "../process/child.js";
import { keepFolder } from "../process/living-children.js";
import { returnPort, takePort } from "../process/port-block.js";
import { scratchFolder } from "../process/scratch-folder.js";
import { type FoundProgram, resolvePgbouncer } from "../resolve/distribution-program.js";

export interface PgbouncerOptions {
  /** Of a database behind it. */
  readonly databaseUrl: string;
  /** For how long a client keeps its connection to Postgres. */
  readonly mode: "session" | "transaction" | "statement";
  /** More lines of pgbouncer.ini, by name. */
  readonly settings?: Readonly<Record<string, string>>;
}

const PORT_ATTEMPTS = 10;
const READY_TIMEOUT_MS = 20_000;

export class Pgbouncer implements AsyncDisposable {
  readonly version: string;
  readonly #child: Child;
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #folder: string;

  private constructor(program: FoundProgram, running: { readonly child: Child; readonly port: number; readonly folder: string }) {
    this.version = program.version;
    this.#child = running.child;
    this.port = running.port;
    this.#folder = running.folder;
  }

  static async start(options: PgbouncerOptions): Promise<Pgbouncer> {
    const program = await resolvePgbouncer();
    // The account of the server must be able to enter it.
    const folder = scratchFolder("pgbouncer", "/tmp");
    await chmod(folder, 0o711);
    for (let attempt = 1; ; attempt += 1) {
      const port = await takePort();
      const file = join(folder, "pgbouncer.ini");
      await writeFile(file, configuration(options, port), { mode: 0o600 });
      if (program.account !== undefined) await chown(file, program.account.uid, program.account.gid);
      const child = await launched(program, file);
      if (child !== undefined) return new Pgbouncer(program, { child, port, folder });
      returnPort(port);
      if (attempt === PORT_ATTEMPTS) throw new Error(`pgbouncer found no free port in ${PORT_ATTEMPTS} attempts`);
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
    keepFolder(this.#folder); // There is nothing left to remove at exit.
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

/** Undefined when another process sits on the port. */
async function launched({ binary, libraryPath, account }: FoundProgram, file: string): Promise<Child | undefined> {
  let isUp = (): void => {};
  const up = new Promise<"up">((resolve) => {
    isUp = () => resolve("up");
  });
  const child = startChild({
    command: binary,
    args: [file],
    env: libraryPath === "" ? {} : { LD_LIBRARY_PATH: libraryPath },
    name: "pgbouncer",
    cwd: "/",
    ...account,
    onLine: (line) => {
      if (line.includes("process up")) isUp();
    },
  });
  const tooLong = new AbortController();
  const late = sleep(READY_TIMEOUT_MS, "late" as const, { signal: tooLong.signal });
  const outcome = await Promise.race([up, child.waitForExit().then(() => "ended" as const), late]);
  tooLong.abort();
  if (outcome === "up") return child;
  const said = child.howItEnded();
  if (outcome === "late") await child.kill();
  if (said.includes("in use")) return undefined;
  throw new Error(`pgbouncer did not start: ${said}`);
}
