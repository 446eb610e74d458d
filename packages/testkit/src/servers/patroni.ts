// Three Postgres servers under Patroni, with etcd and HAProxy, all on this machine and with the
// configuration files that users copy. etcd is one member here: no fault is its own. Patroni and a whole
// Postgres have to be installed; HAProxy and etcd are fetched where they are missing.
import { randomBytes } from "node:crypto";
import { chmod, chown, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { newRoot } from "../postgres/local.js";
import { usersEndWithUs } from "../process/orphans.js";
import { returnPort, takePort } from "../process/port-block.js";
import { killTree } from "../process/process-tree.js";
import { type Child, startChild } from "../process/program.js";
import { type Account, type Environment, serverAccount } from "../programs/cache.js";
import { systemFolders, versionIn } from "../programs/postgres.js";
import { type Program, programOf } from "../programs/programs.js";
import { type Address, FaultProxy } from "../proxy/fault-proxy.js";
import { accepts, isOk, startProgram } from "./distribution.js";

interface PatroniPrograms {
  readonly patroni: string;
  /** With every program that Patroni runs. */
  readonly postgresFolder: string;
  readonly etcd: Program;
  readonly haproxy: Program;
  readonly account: Account | undefined;
  /** One line that says what was found. */
  readonly description: string;
}

/** What is missing and how to get it, as a sentence. */
export class MissingPrograms extends Error {}

const ofPostgres = ["postgres", "initdb", "pg_ctl", "pg_basebackup", "pg_rewind", "pg_controldata", "pg_isready"];

/** Looks for all before it gives up, so that one message names everything. */
export async function resolvePatroniPrograms(
  env: Environment = process.env,
  patroniIn = ["/usr/bin", "/usr/local/bin"],
): Promise<PatroniPrograms> {
  const { PATH = "", PALISADE_POSTGRES_BIN: asked } = env;
  const found = await Promise.allSettled([
    firstThatRuns([...PATH.split(delimiter), ...patroniIn], ["patroni"]),
    firstThatRuns(asked ? [asked] : await systemFolders(env), ofPostgres),
    programOf("etcd"),
    programOf("haproxy"),
  ]);
  const missing = found.flatMap((one) => (one.status === "rejected" ? [(one.reason as Error).message] : []));
  const [patroni, postgres, etcd, haproxy] = found;
  if (patroni.status === "rejected" || postgres.status === "rejected" || etcd.status === "rejected" || haproxy.status === "rejected") {
    const remedy = "apt-get install patroni etcd-server haproxy postgresql";
    throw new MissingPrograms(`this needs three Postgres servers under Patroni: ${missing.join("; ")}. ${remedy}`);
  }
  return {
    patroni: join(patroni.value.folder, "patroni"),
    postgresFolder: postgres.value.folder,
    etcd: etcd.value,
    haproxy: haproxy.value,
    account: serverAccount(),
    description: `Postgres ${postgres.value.version} under Patroni ${patroni.value.version}, ${etcd.value.version}, ${haproxy.value.version}`,
  };
}

/** The folder that has them all, where the first tells its version. */
async function firstThatRuns(folders: readonly string[], programs: readonly string[]): Promise<{ folder: string; version: string }> {
  for (const folder of folders.filter((one) => one !== "")) {
    const version = await versionIn(folder, programs).catch(() => undefined);
    if (version !== undefined) return { folder, version };
  }
  throw new Error(`there is no ${programs.join(", ")} that runs`);
}

/** What every server of a cluster has. */
interface Shared {
  readonly programs: PatroniPrograms;
  /** A copy of the user's patroni.yml. */
  readonly configuration: string;
  readonly folder: string;
  readonly password: string;
}

/** patroni.yml, with the memory that Postgres shares in its data folder, and gone with it; a SIGKILL leaves files in /dev/shm otherwise. */
export function memoryInFolder(patroniYml: string): string {
  return patroniYml.replace(/^postgresql:\n {2}parameters:\n/m, "$&    dynamic_shared_memory_type: mmap\n");
}

const SIZE = 3;
const WHOLE_WITHIN_MS = 120_000;
const POLL_MS = 100;

export class PatroniCluster implements AsyncDisposable {
  readonly nodes: readonly PatroniNode[];
  readonly description: string;
  /** Where HAProxy sends to the primary. */
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #its: Shared;
  readonly #servers: readonly Child[];

  private constructor(its: Shared, { nodes, port }: Pick<PatroniCluster, "nodes" | "port">, servers: readonly Child[]) {
    this.#its = its;
    this.nodes = nodes;
    this.description = its.programs.description;
    this.port = port;
    this.#servers = servers;
  }

  /** With copies of these patroni.yml and haproxy.cfg. */
  static async start(configuration: { readonly patroni: string; readonly haproxy: string }): Promise<PatroniCluster> {
    const programs = await resolvePatroniPrograms();
    const folder = await newRoot(programs, { durable: false });
    // What an agent started has no parent once the agent is dead.
    usersEndWithUs(folder);
    const copied = async (path: string, name: string, change = (text: string): string => text): Promise<string> => {
      const copy = join(folder, name);
      await writeFile(copy, change(await readFile(path, "utf8")));
      await chmod(copy, 0o644); // The account of the servers must read it, wherever the clone is.
      return copy;
    };
    const password = randomBytes(12).toString("hex");
    const its = { programs, configuration: await copied(configuration.patroni, "patroni.yml", memoryInFolder), folder, password };
    const haproxyConfiguration = await copied(configuration.haproxy, "haproxy.cfg");
    const [etcdPort, port] = [await takePort(), await takePort()];
    const etcd = await startEtcd(programs.etcd, folder, etcdPort);
    const names = Array.from({ length: SIZE }, (_, index) => `postgres-${index + 1}`);
    const nodes = await Promise.all(names.map((name) => PatroniNode.prepare(name, its, { host: "127.0.0.1", port: etcdPort })));
    const addresses = nodes.flatMap(({ host, port: own, restPort }, index) => [
      [`POSTGRES_${index + 1}`, `${host}:${own}`],
      [`PATRONI_${index + 1}_PORT`, String(restPort)],
    ]);
    // It listens whether it knows a primary or not.
    const haproxy = await startProgram(programs.haproxy, {
      name: "haproxy",
      args: ["-db", "-f", haproxyConfiguration],
      env: { ...Object.fromEntries(addresses), POSTGRES_LISTEN: `127.0.0.1:${port}` },
      isReady: () => accepts(port),
    });
    const cluster = new PatroniCluster(its, { nodes, port }, [haproxy, etcd]);
    try {
      for (const node of nodes) node.startAgent();
      await cluster.whole();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** Of the superuser's database, through HAProxy, or through another way to it. */
  url(port = this.port): string {
    return `postgres://postgres:${this.#its.password}@${this.host}:${port}/postgres`;
  }

  /** Fails when none is there within the time that a failover may take. */
  async primary(): Promise<PatroniNode> {
    return await this.#until("there is a primary", async () => {
      const answers = await Promise.all(this.nodes.map((node) => node.isPrimary()));
      return this.nodes[answers.indexOf(true)];
    });
  }

  /** One primary, and all others stream from it; one at least is synchronous, if any has to be. */
  async whole(): Promise<void> {
    await this.#until("the cluster is whole", async () => (await this.isWhole()) || undefined);
  }

  async isWhole(): Promise<boolean> {
    const primaries = await Promise.all(this.nodes.map((node) => node.isPrimary()));
    const primary = this.nodes[primaries.indexOf(true)];
    if (primary === undefined || primaries.filter((one) => one).length !== 1) return false;
    const [state, config, cluster] = await Promise.all([
      primary.state(),
      primary.ask<{ readonly synchronous_mode?: boolean }>("GET", "/config").catch(() => undefined),
      primary.ask<{ readonly members?: readonly { readonly role: string }[] }>("GET", "/cluster").catch(() => undefined),
    ]);
    const streaming = state?.replication?.filter(({ state: how }) => how === "streaming") ?? [];
    // Postgres may wait for any standby before Patroni has chosen the one that may take over.
    const hasHeir = cluster?.members?.some(({ role }) => role === "sync_standby" || role === "quorum_standby") === true;
    return streaming.length === this.nodes.length - 1 && (hasHeir || config?.synchronous_mode === false);
  }

  /** Planned: the primary hands over to a standby that has everything. */
  async switchOver(): Promise<void> {
    const primary = await this.primary();
    await primary.ask("POST", "/switchover", { leader: primary.name });
  }

  /** For a control: a commit waits for no other machine, and one that lags may be promoted. */
  async replicateAsynchronously(): Promise<void> {
    const primary = await this.primary();
    const change = { synchronous_mode: false, synchronous_mode_strict: false, maximum_lag_on_failover: 1_000_000_000 };
    await primary.ask("PATCH", "/config", change);
    await this.#until("replication is asynchronous", async () => {
      const replication = (await primary.state())?.replication ?? [];
      return (replication.length === SIZE - 1 && replication.every(({ sync_state: how }) => how === "async")) || undefined;
    });
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.killAgent()));
    await Promise.all(this.nodes.map((node) => node.stop()));
    await Promise.all(this.#servers.map((server) => server.kill()));
    await rm(this.#its.folder, { recursive: true, force: true, maxRetries: 3 });
    returnPort(this.port);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** What the question finds, asked again and again. */
  async #until<Found>(what: string, find: () => Promise<Found | undefined>): Promise<Found> {
    for (const giveUpAt = performance.now() + WHOLE_WITHIN_MS; performance.now() < giveUpAt; await sleep(POLL_MS)) {
      const found = await find();
      if (found !== undefined) return found;
    }
    const lastWords = this.nodes.map((node) => node.lastWords()).join("\n");
    throw new Error(`it is not true after ${WHOLE_WITHIN_MS} ms that ${what}: ${lastWords}`);
  }
}

/** Which Patroni keeps its cluster in. */
async function startEtcd(program: Program, folder: string, port: number): Promise<Child> {
  const [url, peerUrl] = [`http://127.0.0.1:${port}`, `http://127.0.0.1:${await takePort()}`];
  const settings = {
    name: "etcd",
    "data-dir": join(folder, "etcd"),
    "listen-client-urls": url,
    "advertise-client-urls": url,
    "listen-peer-urls": peerUrl,
    "initial-advertise-peer-urls": peerUrl,
    "initial-cluster": `etcd=${peerUrl}`,
    "log-level": "error",
  };
  const { account } = program;
  await mkdir(settings["data-dir"], { mode: 0o700 });
  if (account !== undefined) await chown(settings["data-dir"], account.uid, account.gid);
  const args = Object.entries(settings).map(([key, value]) => `--${key}=${value}`);
  return await startProgram(program, { name: "etcd", args, isReady: () => isOk(`${url}/health`) });
}

/** What Patroni's REST API says of a node. */
export interface NodeState {
  readonly state: string;
  readonly role: string;
  readonly replication?: readonly { readonly application_name: string; readonly state: string; readonly sync_state: string }[];
}

const ANSWER_WITHIN_MS = 2_000;

export class PatroniNode {
  readonly host = "127.0.0.1";
  readonly name: string;
  /** Of Postgres. */
  readonly port: number;
  readonly restPort: number;
  /** partition() cuts this node off from etcd. */
  readonly toEtcd: FaultProxy;
  /** Where other nodes reach its Postgres: partition() keeps what it commits from its standbys. */
  readonly fromStandbys: FaultProxy;
  readonly #its: Shared;
  #agent: Child | undefined;

  private constructor(its: Shared, ways: Pick<PatroniNode, "name" | "port" | "restPort" | "toEtcd" | "fromStandbys">) {
    this.#its = its;
    this.name = ways.name;
    this.port = ways.port;
    this.restPort = ways.restPort;
    this.toEtcd = ways.toEtcd;
    this.fromStandbys = ways.fromStandbys;
  }

  /** Starts nothing but the proxies. */
  static async prepare(name: string, its: Shared, etcd: Address): Promise<PatroniNode> {
    const [port, restPort] = [await takePort(), await takePort()];
    const toEtcd = await FaultProxy.start({ upstream: etcd });
    const fromStandbys = await FaultProxy.start({ upstream: { host: "127.0.0.1", port } });
    const { account } = its.programs;
    const node = new PatroniNode(its, { name, port, restPort, toEtcd, fromStandbys });
    await mkdir(node.#home, { mode: 0o700 });
    if (account !== undefined) await chown(node.#home, account.uid, account.gid);
    return node;
  }

  startAgent(): void {
    const { programs, configuration } = this.#its;
    this.#agent = startChild({
      command: programs.patroni,
      args: [configuration],
      env: this.#environment(),
      name: `patroni ${this.name}`,
      cwd: "/",
      ...programs.account,
    });
  }

  /** Postgres goes on. */
  async killAgent(): Promise<void> {
    await this.#agent?.kill();
  }

  /** All of its processes at once. */
  async killPostgres(): Promise<void> {
    const text = await readFile(join(this.#data, "postmaster.pid"), "utf8").catch(() => "");
    const pid = Number.parseInt(text, 10);
    if (pid > 0 && (await this.#isPostgres(pid))) await killTree(pid);
  }

  /** Undefined while the agent does not answer. */
  async state(): Promise<NodeState | undefined> {
    return await this.ask<NodeState>("GET", "/patroni").catch(() => undefined);
  }

  /** Whether Patroni sends writers here. */
  async isPrimary(): Promise<boolean> {
    return await this.#fetch("GET", "/primary").then(
      ({ status }) => status === 200,
      () => false,
    );
  }

  /** Of Patroni's REST API; fails with what it said if it refused. */
  async ask<Answer>(method: "GET" | "POST" | "PATCH", path: string, body?: object): Promise<Answer> {
    const response = await this.#fetch(method, path, body);
    const text = await response.text();
    if (response.status >= 400 && method !== "GET")
      throw new Error(`${this.name} answered ${method} ${path} with ${response.status}: ${text}`);
    return (text.startsWith("{") ? JSON.parse(text) : text) as Answer;
  }

  lastWords(): string {
    return this.#agent?.howItEnded() ?? `${this.name} was never started`;
  }

  async stop(): Promise<void> {
    await this.killAgent();
    await this.killPostgres();
    await Promise.all([this.toEtcd.stop(), this.fromStandbys.stop()]);
  }

  get #home(): string {
    return join(this.#its.folder, this.name);
  }

  get #data(): string {
    return join(this.#home, "data");
  }

  /** The number in the file may belong to another process meanwhile. */
  async #isPostgres(pid: number): Promise<boolean> {
    const command = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    return command.includes(this.#data);
  }

  async #fetch(method: string, path: string, body?: object): Promise<Response> {
    const switches = path === "/switchover" ? 30_000 : ANSWER_WITHIN_MS; // It answers when it is done.
    return await fetch(`http://${this.host}:${this.restPort}${path}`, {
      method,
      signal: AbortSignal.timeout(switches),
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
  }

  #environment(): Record<string, string> {
    const { programs, password } = this.#its;
    return {
      HOME: this.#home,
      PATRONI_NAME: this.name,
      PATRONI_RESTAPI_LISTEN: `${this.host}:${this.restPort}`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${this.host}:${this.restPort}`,
      PATRONI_POSTGRESQL_LISTEN: `${this.host}:${this.port}`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${this.host}:${this.fromStandbys.port}`,
      PATRONI_POSTGRESQL_DATA_DIR: this.#data,
      PATRONI_POSTGRESQL_BIN_DIR: programs.postgresFolder,
      PATRONI_POSTGRESQL_PGPASS: join(this.#home, "pgpass"),
      PATRONI_ETCD3_HOSTS: `${this.toEtcd.host}:${this.toEtcd.port}`,
      // Only through this, not to the address that etcd tells.
      PATRONI_ETCD3_USE_PROXIES: "true",
      PATRONI_SUPERUSER_USERNAME: "postgres",
      PATRONI_SUPERUSER_PASSWORD: password,
      PATRONI_REPLICATION_USERNAME: "replicator",
      PATRONI_REPLICATION_PASSWORD: password,
    };
  }
}
