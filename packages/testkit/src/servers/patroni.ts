// Three Postgres servers under Patroni, with etcd and HAProxy, all on this machine and with the
// configuration files that users copy. Patroni and a whole Postgres have to be installed; HAProxy and
// etcd are fetched where they are missing.
import { randomBytes } from "node:crypto";
import { chmod, chown, copyFile, mkdir, readFile, rm } from "node:fs/promises";
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
import { accepts, isOk, startProgram } from "./server-program.js";

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

export interface PatroniOptions {
  /** Of patroni.yml and haproxy.cfg. */
  readonly configuration: { readonly patroni: string; readonly haproxy: string };
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
  readonly #password: string;
  /** Ends what else there is. */
  readonly #end: () => Promise<void>;

  private constructor(its: Pick<PatroniCluster, "nodes" | "description" | "port">, password: string, end: () => Promise<void>) {
    this.nodes = its.nodes;
    this.description = its.description;
    this.port = its.port;
    this.#password = password;
    this.#end = end;
  }

  static async start({ configuration }: PatroniOptions): Promise<PatroniCluster> {
    const programs = await resolvePatroniPrograms();
    const folder = await newRoot(programs, { durable: false });
    const copied = async (path: string, name: string): Promise<string> => {
      const copy = join(folder, name);
      await copyFile(path, copy);
      await chmod(copy, 0o644); // The account of the servers must read it, wherever the clone is.
      return copy;
    };
    const files = {
      patroni: await copied(configuration.patroni, "patroni.yml"),
      haproxy: await copied(configuration.haproxy, "haproxy.cfg"),
    };
    // What an agent started has no parent once the agent is dead.
    usersEndWithUs(folder);
    const etcd = await startEtcd(programs.etcd, folder);
    const password = randomBytes(12).toString("hex");
    const common = { programs, configuration: files.patroni, folder, etcd: etcd.members, password };
    const nodes = await Promise.all(
      Array.from({ length: SIZE }, (_, index) => PatroniNode.prepare({ ...common, name: `postgres-${index + 1}` })),
    );
    const port = await takePort();
    const addresses = nodes.flatMap(({ host, port: own, restPort }, index) => [
      [`POSTGRES_${index + 1}`, `${host}:${own}`],
      [`PATRONI_${index + 1}_PORT`, String(restPort)],
    ]);
    // It listens whether it knows a primary or not.
    const haproxy = await startProgram(programs.haproxy, {
      name: "haproxy",
      args: ["-db", "-f", files.haproxy],
      env: { ...Object.fromEntries(addresses), POSTGRES_LISTEN: `127.0.0.1:${port}` },
      isReady: () => accepts(port),
    });
    const cluster = new PatroniCluster({ nodes, description: programs.description, port }, password, async () => {
      await haproxy.kill();
      await Promise.all(nodes.map((node) => node.killAgent()));
      await Promise.all(nodes.map((node) => node.stop()));
      await etcd.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    });
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
    return `postgres://postgres:${this.#password}@${this.host}:${port}/postgres`;
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
    await this.#end();
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

/** An etcd of several members, which Patroni keeps its cluster in, in a folder that the caller removes. */
async function startEtcd(program: Program, folder: string): Promise<{ readonly members: readonly Address[]; stop(): Promise<void> }> {
  const places = await Promise.all(
    Array.from({ length: SIZE }, async (_, index) => ({
      name: `etcd-${index + 1}`,
      client: await takePort(),
      peer: await takePort(),
      data: join(folder, `etcd-${index + 1}`),
    })),
  );
  const started = await Promise.allSettled(
    places.map(async ({ name, client, peer, data }) => {
      await mkdir(data, { mode: 0o700 });
      if (program.account !== undefined) await chown(data, program.account.uid, program.account.gid);
      const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`];
      const settings = {
        name,
        "data-dir": data,
        "listen-client-urls": clientUrl,
        "advertise-client-urls": clientUrl,
        "listen-peer-urls": peerUrl,
        "initial-advertise-peer-urls": peerUrl,
        "initial-cluster": places.map((one) => `${one.name}=http://127.0.0.1:${one.peer}`).join(","),
        "initial-cluster-state": "new",
        // On a machine that does much else, the defaults would elect a leader again and again.
        "heartbeat-interval": "300",
        "election-timeout": "3000",
        "log-level": "error",
      };
      const args = Object.entries(settings).map(([key, value]) => `--${key}=${value}`);
      return await startProgram(program, { name, args, isReady: () => isOk(`${clientUrl}/health`) });
    }),
  );
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((one) => (one.status === "fulfilled" ? one.value.kill() : undefined)));
    for (const port of places.flatMap(({ client, peer }) => [client, peer])) returnPort(port);
  };
  const failed = started.find((one) => one.status === "rejected");
  if (failed === undefined) return { members: places.map(({ client }) => ({ host: "127.0.0.1", port: client })), stop };
  await stop();
  throw failed.reason;
}

interface NodeSettings {
  readonly name: string;
  readonly programs: PatroniPrograms;
  /** The file of the user's. */
  readonly configuration: string;
  readonly folder: string;
  readonly etcd: readonly Address[];
  readonly password: string;
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
  /** The way to each member of etcd: partition() cuts this node off. */
  readonly toEtcd: readonly FaultProxy[];
  /** Where other nodes reach its Postgres: partition() keeps what it commits from its standbys. */
  readonly fromStandbys: FaultProxy;
  readonly #settings: NodeSettings;
  #agent: Child | undefined;

  private constructor(settings: NodeSettings, ways: Pick<PatroniNode, "port" | "restPort" | "toEtcd" | "fromStandbys">) {
    this.#settings = settings;
    this.name = settings.name;
    this.port = ways.port;
    this.restPort = ways.restPort;
    this.toEtcd = ways.toEtcd;
    this.fromStandbys = ways.fromStandbys;
  }

  /** Starts nothing but the proxies. */
  static async prepare(settings: NodeSettings): Promise<PatroniNode> {
    const [port, restPort] = [await takePort(), await takePort()];
    const toEtcd = await Promise.all(settings.etcd.map((upstream) => FaultProxy.start({ upstream })));
    const fromStandbys = await FaultProxy.start({ upstream: { host: "127.0.0.1", port } });
    const { account } = settings.programs;
    const node = new PatroniNode(settings, { port, restPort, toEtcd, fromStandbys });
    await mkdir(node.#home);
    await chmod(node.#home, 0o700);
    if (account !== undefined) await chown(node.#home, account.uid, account.gid);
    return node;
  }

  startAgent(): void {
    const { name, programs, configuration } = this.#settings;
    this.#agent = startChild({
      command: programs.patroni,
      args: [configuration],
      env: this.#environment(),
      name: `patroni ${name}`,
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
    await Promise.all([...this.toEtcd, this.fromStandbys].map((proxy) => proxy.stop()));
  }

  get #home(): string {
    return join(this.#settings.folder, this.name);
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
    const { name, programs, password } = this.#settings;
    return {
      HOME: this.#home,
      PATRONI_NAME: name,
      PATRONI_RESTAPI_LISTEN: `${this.host}:${this.restPort}`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${this.host}:${this.restPort}`,
      PATRONI_POSTGRESQL_LISTEN: `${this.host}:${this.port}`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${this.host}:${this.fromStandbys.port}`,
      PATRONI_POSTGRESQL_DATA_DIR: this.#data,
      PATRONI_POSTGRESQL_BIN_DIR: programs.postgresFolder,
      PATRONI_POSTGRESQL_PGPASS: join(this.#home, "pgpass"),
      PATRONI_ETCD3_HOSTS: this.toEtcd.map(({ host, port }) => `${host}:${port}`).join(","),
      // Only through these, not to the addresses that etcd tells.
      PATRONI_ETCD3_USE_PROXIES: "true",
      PATRONI_SUPERUSER_USERNAME: "postgres",
      PATRONI_SUPERUSER_PASSWORD: password,
      PATRONI_REPLICATION_USERNAME: "replicator",
      PATRONI_REPLICATION_PASSWORD: password,
    };
  }
}
