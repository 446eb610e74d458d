// Takes a row of a soak: every curve's value at one moment, from the processes and from the servers
// (Redis by INFO, Postgres by its catalogue and the kernel, the gateway's queues by its metrics).
// What did not answer lately is a gap in its curve, not a zero.
import { readFileSync } from "node:fs";
import type { Values } from "../history/samples.js";
import { Latency, quantileMs } from "../traffic/latency.js";
import { type Reading, type Timing, timings } from "../traffic/messages.js";
import type { SelfReading } from "../traffic/probe.js";
import type { SoakEnvironment } from "./environment.js";

/** A reading older than so many intervals is left out; on a busy machine readings are late. */
const STALE_AFTER = 2.5;
const STALE_AFTER_MS = 1_000;
/** Rates and percentiles are of so many rows together. */
const ROWS_PER_WINDOW = 6;

export class Sampler {
  /** Of all clients since the beginning. */
  readonly operations: Record<string, number> = {};
  readonly failures: Record<string, number> = {};
  readonly #environment: SoakEnvironment;
  readonly #everyMs: number;
  readonly #latencies = Object.fromEntries(timings.map((name) => [name, new Latency()])) as Record<Timing, Latency>;
  #rows = 0;
  #windowAt = performance.now();
  #totalBefore = 0;

  constructor(environment: SoakEnvironment, everyMs: number) {
    this.#environment = environment;
    this.#everyMs = everyMs;
    environment.workers.onReading = (reading) => this.#add(reading);
  }

  get total(): number {
    return Object.values(this.operations).reduce((sum, count) => sum + count, 0);
  }

  async take(): Promise<Values> {
    const environment = this.#environment;
    const servers = await Promise.all([readRedis(environment), readPostgres(environment), readGateway(environment)]);
    const values: Values = Object.assign({}, ...servers);
    for (const { name, last } of environment.workers.all) {
      if (last === undefined || this.#isStale(last.at)) continue;
      addSelf(values, { panel: "client", series: name, self: last.reading.self });
      values[`client-waiting/${name}`] = last.reading.waiting;
    }
    const { self, at } = environment.gatewaySelf;
    if (self !== undefined && !this.#isStale(at)) addSelf(values, { panel: "gateway", series: "gateway", self });
    this.#rows++;
    if (this.#rows % ROWS_PER_WINDOW === 0) this.#addPace(values);
    return values;
  }

  #add({ operations, failures, latencies }: Reading): void {
    add(this.operations, operations);
    add(this.failures, failures);
    for (const name of timings) this.#latencies[name].addAll(latencies[name]);
  }

  #isStale(at: number): boolean {
    return performance.now() - at > Math.max(STALE_AFTER_MS, STALE_AFTER * this.#everyMs);
  }

  #addPace(values: Values): void {
    const now = performance.now();
    const { total } = this;
    values["operations/all"] = (total - this.#totalBefore) / ((now - this.#windowAt) / 1_000);
    this.#totalBefore = total;
    this.#windowAt = now;
    for (const name of timings) {
      const p99Ms = quantileMs(this.#latencies[name].take(), 0.99);
      if (p99Ms !== undefined) values[`${name}-p99/all`] = p99Ms;
    }
  }
}

function add(to: Record<string, number>, counts: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(counts)) to[name] = (to[name] ?? 0) + count;
}

function addSelf(values: Values, { panel, series, self }: { panel: string; series: string; self: SelfReading }): void {
  const { rssMb, heapMb, keptMb, codeMb, externalMb, handles, timers, fds, threads, lagMs } = self;
  const memory = { rss: rssMb, heap: heapMb, kept: keptMb, code: codeMb, external: externalMb };
  const gauges = { ...memory, handles, timers, fds, threads, lag: lagMs };
  for (const [name, value] of Object.entries(gauges)) if (value !== undefined) values[`${panel}-${name}/${series}`] = value;
}

const MB = 1e6;
const KB_PER_MB = 1e3;
const TIMEOUT_MS = 5_000;

async function readRedis(environment: SoakEnvironment): Promise<Values> {
  const all = await Promise.all(environment.fleet.nodes.map(async (node) => [node.name, await node.cli("INFO").catch(noAnswer)] as const));
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
    (select count(*) from palisade.history) as writes,
    pg_total_relation_size('palisade.used_keys') as keys`;

async function readPostgres(environment: SoakEnvironment): Promise<Values> {
  const row = await environment.ask(CATALOGUE).catch(noAnswer);
  if (row === undefined) return {};
  const value = (name: string): number => Number(row[name] ?? 0);
  return {
    "postgres-backends/postgres": value("backends"),
    "postgres-wal/postgres": value("wal") / MB,
    "postgres-dead/postgres": value("dead"),
    "postgres-document/postgres": value("resources") / Math.max(1, value("documents")),
    "postgres-history/postgres": value("history") / Math.max(1, value("writes")),
    "postgres-keys/postgres": value("keys") / MB,
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

async function readGateway(environment: SoakEnvironment): Promise<Values> {
  const metrics = await fetch(`${environment.gateway.adminUrl}/metrics`, { signal: AbortSignal.timeout(TIMEOUT_MS) })
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
