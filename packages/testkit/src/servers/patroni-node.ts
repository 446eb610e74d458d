// One machine of a Patroni cluster: the agent, and the Postgres that the agent starts, stops and
// outlives or not. Postgres has no parent here, so it is found by the file in which it writes its
// process id.
import { chmod, chown, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { killTree } from "../postgres/process-tree.js";
import { type Child, startChild } from "../process/child.js";
import { takePort } from "../process/port-block.js";
import { FaultProxy } from "../proxy/fault-proxy.js";
import type { PatroniPrograms } from "../resolve/patroni.js";
import type { EtcdMember } from "./etcd.js";

interface NodeSettings {
  readonly name: string;
  readonly programs: PatroniPrograms;
  /** The file of the user's. */
  readonly configuration: string;
  readonly folder: string;
  readonly etcd: readonly EtcdMember[];
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
