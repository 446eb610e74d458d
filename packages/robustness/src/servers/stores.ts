// The stores of a run of the whole system: a Postgres primary with its synchronous standby, three servers under Patroni,
// or a Citus cluster. Clients and gateways reach each by links that break; the last two bring faults of their own.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import {
  type Address,
  addressOf,
  CitusCluster,
  FaultProxy,
  gatewayProgram,
  PatroniCluster,
  type PatroniNode,
  Pgbouncer,
  PostgresPair,
  type PostgresServer,
  queryAt,
} from "@palisade/testkit";
import type pg from "pg";
import type { Chance } from "../chance.js";

export interface StoreLink {
  readonly url: string;
  readonly proxy: FaultProxy;
}

/** Faults that a store brings itself. */
export interface StoreFaults {
  readonly kinds: readonly string[];
  /** Chooses the server that the fault meets; undoes it once the server is away. */
  choose(kind: string, chance: Chance): Promise<{ readonly target: string; readonly inject: () => Promise<void> }>;
}

interface Served {
  readonly description: string;
  /** Where it is now, past all links. */
  url(): string;
  stop(): Promise<unknown>;
  /** Of a gateway's links, where that is another place. */
  addressFor?(gateway: number): Address | undefined;
}

export class SystemStore implements AsyncDisposable {
  readonly #served: Served;
  readonly #links: FaultProxy[] = [];

  constructor(served: Served) {
    this.#served = served;
  }

  get description(): string {
    return this.#served.description;
  }

  /** A link of a client, or of that gateway. */
  async link(gateway = -1): Promise<StoreLink> {
    const proxy = await FaultProxy.start({ upstream: this.#served.addressFor?.(gateway) ?? this.#address });
    this.#links.push(proxy);
    return { url: proxy.urlOf(this.#served.url()), proxy };
  }

  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    return await queryAt<Row>(this.#served.url(), text);
  }

  /** While `move` goes on, the links lead nowhere; then to where it is. */
  async moves(move: () => Promise<void>): Promise<void> {
    await Promise.all(this.#links.map((link) => link.serverDown()));
    await move();
    await Promise.all(this.#links.map((link) => link.serverUp(this.#address)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#links.map((link) => link.stop()));
    await this.#served.stop();
  }

  get #address(): Address {
    return addressOf(this.#served.url());
  }
}

/** A primary and its synchronous standby, behind addresses that follow a failover. */
export class PairStore extends SystemStore {
  readonly #pair: PostgresPair;
  #failedOver = false;

  private constructor(pair: PostgresPair) {
    const description = `${pair.primary.description}, a synchronous pair`;
    super({ description, url: () => this.server.url, stop: () => pair.stop() });
    this.#pair = pair;
  }

  static async start(): Promise<PairStore> {
    return new PairStore(await PostgresPair.start({ replication: "sync", settings: { max_connections: "100" } }));
  }

  /** The server that is the store now. */
  get server(): PostgresServer {
    return this.#failedOver ? this.#pair.standby : this.#pair.primary;
  }

  /** Between primary and standby; undefined after the failover. */
  get replication(): FaultProxy | undefined {
    return this.#failedOver ? undefined : this.#pair.replication;
  }

  /** The primary dies for good, with what only it knew; the standby is the store from now on. */
  async failOver(): Promise<void> {
    await this.moves(async () => {
      await this.#pair.primary.crash();
      await this.#pair.promote();
      this.#failedOver = true;
    });
  }
}

const deployed = join(createRequire(import.meta.url).resolve("@palisade/robustness/package.json"), "..", "..", "..", "deploy", "ha");
/** In pgbouncer.ini these name machines; here all are one. */
const ofThisMachine = new Set(["listen_addr", "listen_port", "auth_type", "auth_file", "pool_mode"]);

/**
 * Three Postgres servers under Patroni behind HAProxy, started with the files of deploy/ha. The
 * second gateway reaches them through pgbouncer, which stands before HAProxy.
 */
export async function startPatroniStore(): Promise<{ readonly cluster: PatroniCluster; readonly store: SystemStore }> {
  const cluster = await PatroniCluster.start({ patroni: join(deployed, "patroni.yml"), haproxy: join(deployed, "haproxy.cfg") });
  return await orStopped(cluster, async () => {
    const [, section = ""] = readFileSync(join(deployed, "pgbouncer.ini"), "utf8").split("[pgbouncer]");
    const lines = [...section.matchAll(/^([a-z_]+) *= *(.+)$/gm)].map(([, name = "", value = ""]) => [name, value] as const);
    const settings = Object.fromEntries(lines.filter(([name]) => !ofThisMachine.has(name)));
    const pooler = await Pgbouncer.start({ databaseUrl: cluster.url(), mode: "transaction", settings });
    const store = new SystemStore({
      description: `3 × ${cluster.description}; pgbouncer ${pooler.version}`,
      url: () => cluster.url(),
      addressFor: (gateway) => (gateway === 1 ? pooler : undefined),
      stop: async () => {
        await pooler.stop();
        await cluster.stop();
      },
    });
    return { cluster, store };
  });
}

/** A coordinator, which clients and gateways reach, and two workers; migrated and distributed as an operator does it. */
export async function startCitusStore(): Promise<{ readonly cluster: CitusCluster; readonly store: SystemStore }> {
  const cluster = await CitusCluster.start();
  return await orStopped(cluster, async () => {
    const { url } = await cluster.createDatabase({ name: "palisade" });
    await promisify(execFile)(process.execPath, [gatewayProgram, "migrate", "--citus"], { env: { ...process.env, DATABASE_URL: url } });
    return { cluster, store: new SystemStore({ description: cluster.description, url: () => url, stop: () => cluster.stop() }) };
  });
}

async function orStopped<T>(cluster: { stop(): Promise<unknown> }, go: () => Promise<T>): Promise<T> {
  try {
    return await go();
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** How long a server is away. */
const AWAY_MS = 2_000;
/** Long enough that a beat of the gateway is among what the standbys do not get. */
const LAG_MS = 2_500;
const POLL_MS = 50;

export function citusFaults({ coordinator, workers }: CitusCluster): StoreFaults {
  return {
    kinds: ["worker killed", "worker restarted", "worker paused", "coordinator killed", "coordinator restarted"],
    choose: async (kind, chance) => {
      const index = chance.between(0, workers.length - 1);
      const isWorker = kind.startsWith("worker");
      const server = isWorker ? (workers[index] as PostgresServer) : coordinator;
      return { target: isWorker ? `worker ${index + 1}` : "coordinator", inject: () => breakServer(server, kind) };
    },
  };
}

async function breakServer(server: PostgresServer, kind: string): Promise<void> {
  if (kind.endsWith("restarted")) return await server.restart();
  const isPaused = kind.endsWith("paused");
  await (isPaused ? server.pause() : server.crash());
  await sleep(AWAY_MS);
  await (isPaused ? server.resume() : server.restart());
}

/** Without two that are part of the last one, each of which waits for Patroni's ttl. */
const brief = ["switchover", "Postgres killed", "cut off from etcd", "cut off from standbys, then killed"];
const kindsOf = {
  all: [...brief, "agent killed", "machine killed"],
  brief,
  control: ["cut off from standbys, then killed"],
};

/** `failedOver` is called when another server has become the primary and has not all that was written. */
export function patroniFaults(cluster: PatroniCluster, which: keyof typeof kindsOf, failedOver?: () => Promise<unknown>): StoreFaults {
  const replaced = async (former: PatroniNode): Promise<void> => {
    while ((await cluster.primary()) === former) await sleep(POLL_MS);
  };
  /** The server is as it was when this resolves, or on its way. */
  const inject = async (kind: string, primary: PatroniNode): Promise<void> => {
    if (kind === "switchover") {
      await cluster.switchOver();
      return await replaced(primary);
    }
    // Patroni starts it again where it was, or has another one take over.
    if (kind === "Postgres killed") return await primary.killPostgres();
    if (kind === "cut off from etcd") {
      await primary.toEtcd.partition();
      await replaced(primary);
      return await primary.toEtcd.heal();
    }
    const isCutOff = kind === "cut off from standbys, then killed";
    if (isCutOff) {
      await primary.fromStandbys.partition();
      await sleep(LAG_MS);
    }
    await primary.killAgent();
    if (kind !== "agent killed") await primary.killPostgres();
    if (isCutOff) await primary.fromStandbys.heal();
    await replaced(primary);
    if (isCutOff) await failedOver?.();
    primary.startAgent();
  };
  return {
    kinds: kindsOf[which],
    choose: async (kind) => {
      const primary = await cluster.primary();
      return {
        target: primary.name,
        inject: async () => {
          await inject(kind, primary);
          await cluster.whole();
        },
      };
    },
  };
}
