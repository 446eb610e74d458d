// Three Postgres servers under Patroni, with etcd and HAProxy, all on this machine and with the
// configuration files that users copy.
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, copyFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { newRoot } from "../postgres/data-folder.js";
import { keepFolder } from "../process/living-children.js";
import { resolvePatroniPrograms } from "../resolve/patroni.js";
import { Etcd } from "./etcd.js";
import { Haproxy } from "./haproxy.js";
import { PatroniNode } from "./patroni-node.js";

export interface PatroniOptions {
  /** Of patroni.yml and haproxy.cfg. */
  readonly configuration: { readonly patroni: string; readonly haproxy: string };
}

const SIZE = 3;
const WHOLE_WITHIN_MS = 120_000;
const POLL_MS = 100;
/** Agents end with this process; what they started has no parent, and is found by its folder. */
const END_WHEN_ALONE = `
read -r _
for try in 1 2 3 4 5; do
  for process in /proc/[0-9]*; do
    tr '\\0' ' ' 2>/dev/null < "$process/cmdline" | grep -qF -e "-D $1/" && kill -KILL "\${process#/proc/}"
  done
  sleep 0.2
done`;

interface Parts {
  readonly description: string;
  readonly nodes: readonly PatroniNode[];
  readonly etcd: Etcd;
  readonly haproxy: Haproxy;
  readonly folder: string;
  readonly password: string;
  readonly keeper: ChildProcess;
}

export class PatroniCluster implements AsyncDisposable {
  readonly nodes: readonly PatroniNode[];
  readonly description: string;
  /** Where HAProxy sends to the primary. */
  readonly host = "127.0.0.1";
  readonly port: number;
  readonly #parts: Parts;

  private constructor(parts: Parts) {
    this.#parts = parts;
    this.nodes = parts.nodes;
    this.description = parts.description;
    this.port = parts.haproxy.port;
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
    const keeper = watchOver(folder);
    const etcd = await Etcd.start(programs.etcd, { size: SIZE, folder });
    const password = randomBytes(12).toString("hex");
    const common = { programs, configuration: files.patroni, folder, etcd: etcd.members, password };
    const nodes = await Promise.all(
      Array.from({ length: SIZE }, (_, index) => PatroniNode.prepare({ ...common, name: `postgres-${index + 1}` })),
    );
    const haproxy = await Haproxy.start(programs.haproxy, {
      configuration: files.haproxy,
      listen: "POSTGRES_LISTEN",
      env: Object.fromEntries(
        nodes.flatMap(({ host, port, restPort }, index) => [
          [`POSTGRES_${index + 1}`, `${host}:${port}`],
          [`PATRONI_${index + 1}_PORT`, String(restPort)],
        ]),
      ),
    });
    const cluster = new PatroniCluster({ description: programs.description, nodes, etcd, haproxy, folder, password, keeper });
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
    return `postgres://postgres:${this.#parts.password}@${this.host}:${port}/postgres`;
  }

  /** Fails when none is there within the time that a failover may take. */
  async primary(): Promise<PatroniNode> {
    for (const giveUpAt = performance.now() + WHOLE_WITHIN_MS; performance.now() < giveUpAt; await sleep(POLL_MS)) {
      const answers = await Promise.all(this.nodes.map((node) => node.isPrimary()));
      const found = this.nodes[answers.indexOf(true)];
      if (found !== undefined) return found;
    }
    throw new Error(`no node became the primary within ${WHOLE_WITHIN_MS} ms: ${this.#lastWords()}`);
  }

  /** One primary, and all others stream from it; one at least is synchronous, if any has to be. */
  async whole(): Promise<void> {
    for (const giveUpAt = performance.now() + WHOLE_WITHIN_MS; performance.now() < giveUpAt; await sleep(POLL_MS))
      if (await this.isWhole()) return;
    throw new Error(`the cluster is not whole after ${WHOLE_WITHIN_MS} ms: ${this.#lastWords()}`);
  }

  async isWhole(): Promise<boolean> {
    const primaries = await Promise.all(this.nodes.map((node) => node.isPrimary()));
    const primary = this.nodes[primaries.indexOf(true)];
    if (primary === undefined || primaries.filter((one) => one).length !== 1) return false;
    const [state, config, cluster] = await Promise.all([
      primary.state(),
      primary.ask<Config>("GET", "/config").catch(() => undefined),
      primary.ask<Members>("GET", "/cluster").catch(() => undefined),
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
    for (const giveUpAt = performance.now() + WHOLE_WITHIN_MS; performance.now() < giveUpAt; await sleep(POLL_MS)) {
      const replication = (await primary.state())?.replication ?? [];
      if (replication.length === SIZE - 1 && replication.every(({ sync_state: how }) => how === "async")) return;
    }
    throw new Error(`replication is not asynchronous after ${WHOLE_WITHIN_MS} ms: ${this.#lastWords()}`);
  }

  async stop(): Promise<void> {
    const { haproxy, etcd, nodes, keeper, folder } = this.#parts;
    await haproxy.stop();
    await Promise.all(nodes.map((node) => node.killAgent()));
    await Promise.all(nodes.map((node) => node.stop()));
    await etcd.stop();
    keeper.kill("SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    keepFolder(folder); // There is nothing left to remove at exit.
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #lastWords(): string {
    return this.nodes.map((node) => node.lastWords()).join("\n");
  }
}

interface Config {
  readonly synchronous_mode?: boolean;
}

interface Members {
  readonly members?: readonly { readonly role: string }[];
}

/** A process that outlives this one, and ends every Postgres below the folder then. */
function watchOver(folder: string): ChildProcess {
  const keeper = spawn("/bin/sh", ["-c", END_WHEN_ALONE, "sh", folder], {
    argv0: "palisade-keeper",
    stdio: ["pipe", "ignore", "ignore"],
    detached: true, // Ctrl-C at the terminal must not reach it before us.
  });
  keeper.on("error", (cause) => process.emitWarning(`nothing ends Postgres below ${folder} with this process: ${cause.message}`));
  keeper.unref();
  (keeper.stdin as unknown as { unref?: () => void } | null)?.unref?.();
  return keeper;
}
