// Takes a row of a soak: every curve's value at one moment, from the processes and from the servers
// (Redis by INFO, Postgres by its catalogue and the kernel, the gateway's queues by its metrics).
// What did not answer lately is a gap in its curve, not a zero.
import { readFileSync } from "node:fs";
import type { FaultProxy, RedisFleet } from "@palisade/testkit";
import type { Workers } from "../runs/workers.js";
import type { Reading } from "../traffic/messages.js";
import type { SelfReading } from "../traffic/probe.js";
import type { Gateway } from "./gateway.js";

/** What a soak puts under load. */
export interface SoakEnvironment {
  readonly fleet: RedisFleet;
  readonly gateway: Gateway;
  /** Between the clients and the gateway. */
  readonly gatewayLink: FaultProxy;
  /** What the gateway last said of itself, and when. */
  readonly gatewaySelf: { self: SelfReading | undefined; at: number };
  readonly workers: Workers;
  /** One statement to Postgres, on a connection of its own. */
  ask(statement: string): Promise<Record<string, unknown>>;
}

type Values = Record<string, number>;

/** A reading older than so many intervals is left out; on a busy machine readings are late. */
const STALE_AFTER = 2.5;
const STALE_AFTER_MS = 1_000;
/** The rate is of so many rows together. */
const ROWS_PER_WINDOW = 6;
const MB = 1e6;
const KB_PER_MB = 1e3;
const TIMEOUT_MS = 5_000;

export class Sampler {
  /** Of all clients since the beginning. */
  readonly operations: Values = {};
  readonly failures: Values = {};
  readonly #environment: SoakEnvironment;
  readonly #staleMs: number;
  #rows = 0;
  #window = { at: performance.now(), total: 0 };

  constructor(environment: SoakEnvironment, everyMs: number) {
    this.#environment = environment;
    this.#staleMs = Math.max(STALE_AFTER_MS, STALE_AFTER * everyMs);
    environment.workers.onReading = ({ operations, failures }: Reading) => {
      add(this.operations, operations);
      add(this.failures, failures);
    };
  }

  get total(): number {
    return Object.values(this.operations).reduce((sum, count) => sum + count, 0);
  }

  async take(): Promise<Values> {
    const environment = this.#environment;
    const servers = await Promise.all([readRedis(environment), readPostgres(environment), readGateway(environment)]);
    const values: Values = Object.assign({}, ...servers);
    const isStale = (at: number): boolean => performance.now() - at > this.#staleMs;
    const addAll = (group: string, series: string, of: Readonly<Record<string, number>>): void => {
      for (const [name, value] of Object.entries(of)) values[`${group}-${name}/${series}`] = value;
    };
    for (const { name, last } of environment.workers.all) {
      if (last === undefined || isStale(last.at)) continue;
      const { self, waiting, took } = last.reading;
      addAll("client", name, { ...self, waiting });
      addAll("service", name, took);
    }
    const { self, at } = environment.gatewaySelf;
    if (self !== undefined && !isStale(at)) addAll("gateway", "gateway", self);
    if (++this.#rows % ROWS_PER_WINDOW === 0) {
      const now = { at: performance.now(), total: this.total };
      values["service-rate/all"] = (now.total - this.#window.total) / ((now.at - this.#window.at) / 1_000);
      this.#window = now;
    }
    return values;
  }
}

function add(to: Values, counts: Readonly<Values>): void {
  for (const [name, count] of Object.entries(counts)) to[name] = (to[name] ?? 0) + count;
}

async function readRedis({ fleet }: SoakEnvironment): Promise<Values> {
  const all = await Promise.all(fleet.nodes.map(async (node) => [node.name, await node.cli("INFO").catch(noAnswer)] as const));
  const values: Values = {};
  for (const [name, info] of all) {
    if (typeof info !== "string") continue;
    const field = (key: string): number => Number(new RegExp(`^${key}:(?:keys=)?(\\d+)`, "m").exec(info)?.[1] ?? 0);
    values[`redis-memory/${name}`] = field("used_memory") / MB;
    values[`redis-clients/${name}`] = field("connected_clients");
    values[`redis-channels/${name}`] = field("pubsub_channels") + field("pubsub_patterns");
    values[`redis-blocked/${name}`] = field("blocked_clients");
    values[`redis-keys/${name}`] = field("db0");
    values[`redis-scripts/${name}`] = field("number_of_cached_scripts");
  }
  return values;
}

const CATALOGUE = `
  select
    (select pid from pg_stat_activity where backend_type = 'checkpointer') as checkpointer,
    (select count(*) from pg_stat_activity where backend_type = 'client backend' and application_name <> 'soak') as backends,
    (select sum(size) from pg_ls_waldir()) as wal,
    (select sum(n_dead_tup) from pg_stat_user_tables) as dead,
    pg_total_relation_size('palisade.resources') as resources,
    (select count(*) from palisade.resources) as documents,
    pg_total_relation_size('palisade.history') as history,
    (select count(*) from palisade.history) as writes`;

async function readPostgres({ ask }: SoakEnvironment): Promise<Values> {
  const row = await ask(CATALOGUE).catch(noAnswer);
  if (row === undefined) return {};
  const value = (name: string): number => Number(row[name] ?? 0);
  return {
    "postgres-backends/postgres": value("backends"),
    "postgres-wal/postgres": value("wal") / MB,
    "postgres-dead/postgres": value("dead"),
    "postgres-document/postgres": value("resources") / Math.max(1, value("documents")),
    "postgres-history/postgres": value("history") / Math.max(1, value("writes")),
    ...privateMemory(value("checkpointer")),
  };
}

/** Of all its processes, without shared memory, which would be counted once for each. */
function privateMemory(checkpointer: number): Values {
  const postmaster = /^PPid:\s+(\d+)/m.exec(text(`/proc/${checkpointer}/status`))?.[1];
  if (postmaster === undefined) return {}; // It runs on another machine, or in a container.
  const pids = [postmaster, ...text(`/proc/${postmaster}/task/${postmaster}/children`).split(" ").filter(Boolean)];
  const kilobytes = pids.map((pid) => Number(/^RssAnon:\s+(\d+)/m.exec(text(`/proc/${pid}/status`))?.[1] ?? 0));
  return { "postgres-memory/postgres": kilobytes.reduce((sum, one) => sum + one, 0) / KB_PER_MB };
}

async function readGateway({ gateway }: SoakEnvironment): Promise<Values> {
  const metrics = await fetch(`${gateway.adminUrl}/metrics`, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    .then((answer) => answer.text())
    .catch(noAnswer);
  if (metrics === undefined) return {};
  const value = (name: string): number => Number(new RegExp(`^${name} ([0-9.e+]+)$`, "m").exec(metrics)?.[1]);
  return { "gateway-queue/gateway": value("palisade_requests_in_flight") + value("palisade_queued_writes") };
}

// A backend that has just ended.
function text(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

// A disturbance is under way.
function noAnswer(): undefined {}
