// Programs of the distribution as servers of a test: on a port of their own, as an account that is not
// root, with files in a folder that this account can read.
import { once } from "node:events";
import { chmod, chown, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { SUPERUSER } from "../postgres/databases.js";
import { scratchFolder } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import { type Child, startChild } from "../process/program.js";
import { run } from "../programs/cache.js";
import { libraryVariable, type Program, programOf } from "../programs/programs.js";
import { throughHere } from "../proxy/fault-proxy.js";

interface Start {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Looked at again and again: whether it serves. */
  readonly isReady: (child: Child) => Promise<boolean>;
}

const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

/** Fails with its last words if it ends, or does not serve in time. */
export async function startProgram(program: Program, { name, args, env = {}, isReady }: Start): Promise<Child> {
  const child = startChild({
    command: program.binary,
    args,
    env: { ...libraryVariable(program), ...env },
    name,
    cwd: "/",
    ...program.account,
  });
  for (const giveUpAt = performance.now() + READY_TIMEOUT_MS; !(await isReady(child)); await sleep(POLL_MS)) {
    if (child.alive && performance.now() < giveUpAt) continue;
    await child.kill();
    throw new Error(`${name} did not start: ${child.howItEnded()}`);
  }
  return child;
}

interface Place {
  readonly folder: string;
  readonly port: number;
}

/** One that reads files. */
export class ServerProgram implements AsyncDisposable {
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #folder: string;
  readonly #child: Child;

  protected constructor({ folder, port }: Place, child: Child) {
    this.#folder = folder;
    this.port = port;
    this.#child = child;
  }

  /** A place with files by their names, and the child that serves there. */
  protected static async launch(
    program: Program,
    files: (place: Place) => Readonly<Record<string, string>>,
    start: (place: Place) => Start,
  ): Promise<[Place, Child]> {
    const place = { folder: scratchFolder("program", "/tmp"), port: await takePort() };
    const { account } = program;
    await chmod(place.folder, 0o711);
    if (account !== undefined) await chown(place.folder, account.uid, account.gid);
    for (const [name, text] of Object.entries(files(place))) {
      const file = join(place.folder, name);
      await writeFile(file, text, { mode: 0o600 });
      if (account !== undefined) await chown(file, account.uid, account.gid);
    }
    return [place, await startProgram(program, start(place))];
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

export async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isOpen = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return isOpen;
}

/** Whether a GET is answered with 200. */
export async function isOk(url: string): Promise<boolean> {
  return await fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
}

// A real pgbouncer in front of a real Postgres. It forwards whoever connects as the superuser.

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
    const common = {
      listen_addr: "127.0.0.1",
      unix_socket_dir: "",
      auth_type: "any",
      pool_mode: mode,
      default_pool_size: "50",
      server_login_retry: "0.1", // By default it leaves a server that refused one connection alone for 15 s.
    };
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
    return throughHere(databaseUrl, this);
  }
}

// A real Prometheus that scrapes what a test names, with the rules of a file, and its tool.

interface PrometheusOptions {
  /** Addresses as host:port; scraped every second as the job of this name. */
  readonly job: string;
  readonly targets: readonly string[];
  /** The text of a rule file. */
  readonly rules: string;
}

interface FiringAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly state: "pending" | "firing";
}

export class Prometheus extends ServerProgram {
  static async start({ job, targets, rules }: PrometheusOptions): Promise<Prometheus> {
    const configuration = `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
scrape_configs: [{ job_name: ${job}, static_configs: [{ targets: ${JSON.stringify(targets)} }] }]
`;
    const launched = await ServerProgram.launch(
      await programOf("prometheus"),
      () => ({ "prometheus.yml": configuration, "rules.yml": rules }),
      ({ folder, port }) => ({
        name: "prometheus",
        args: [`--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`, `--web.listen-address=127.0.0.1:${port}`],
        isReady: () => isOk(`http://127.0.0.1:${port}/-/ready`),
      }),
    );
    return new Prometheus(...launched);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** What `promtool` prints of these arguments; throws what it prints when it finds fault. */
  static async tool(...args: readonly string[]): Promise<string> {
    const program = await programOf("prometheus");
    const env = { ...process.env, ...libraryVariable(program) };
    const { stdout, stderr } = await run(join(dirname(program.binary), "promtool"), [...args], { env });
    return `${stdout}${stderr}`;
  }

  async alerts(): Promise<readonly FiringAlert[]> {
    const answer = (await (await fetch(`${this.url}/api/v1/alerts`)).json()) as { data: { alerts: readonly FiringAlert[] } };
    return answer.data.alerts;
  }
}

/** What playwright-core has to be given to start a real browser for tests of pages. */
export async function chromiumLaunch(): Promise<{ executablePath: string; env: Record<string, string>; args: string[] }> {
  const { binary, libraryPath } = await programOf("chromium");
  const env = Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
  // Its own sandbox needs rights that containers and root do not have; the pages are ours.
  const launch = { executablePath: binary, args: ["--no-sandbox"] };
  if (libraryPath === "") return { ...launch, env };
  // It was unpacked, and so were its fonts: nothing of the system names them.
  const folder = scratchFolder("chromium");
  const fonts = join(dirname(binary), "../../share/fonts");
  const configuration = join(folder, "fonts.conf");
  await writeFile(configuration, `<fontconfig><dir>${fonts}</dir><dir>/usr/share/fonts</dir><cachedir>${folder}</cachedir></fontconfig>`);
  return { ...launch, env: { ...env, LD_LIBRARY_PATH: libraryPath, FONTCONFIG_FILE: configuration } };
}
