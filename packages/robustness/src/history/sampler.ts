// Takes a row of a soak: every curve's value at one moment. A process that has not reported lately is left out, so that one that
// stands still does not look steady.
import { type Reading, type Timing, timings } from "../harness/messages.js";
import type { SoakEnvironment } from "../profiles/soak.js";
import { Latency, quantileMs } from "../traffic/latency.js";
import type { SelfReading } from "../traffic/probe.js";
import { readGateway, readPostgres, readRedis } from "./gauges.js";
import type { Values } from "./samples.js";

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
