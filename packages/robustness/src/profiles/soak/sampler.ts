// One row of the soak: every curve's value at one moment, by "panel/series". What nobody has said lately is left out, so that a process which stands still does not
// look steady. It must not judge.
import { type Timing, timings } from "./client-words.js";
import type { Crowd } from "./crowd.js";
import { type Counts, quantileMs } from "./latency.js";
import type { SelfReading } from "./probe.js";
import { readGateway, readPostgres, readRedis, type Values } from "./server-gauges.js";
import type { Stage } from "./stage.js";

export interface Row {
  readonly atMs: number;
  readonly values: Readonly<Values>;
}

/** A reading older than so many intervals is none; on a busy machine they come late. */
const STALE_AFTER = 2.5;
const STALE_AFTER_MS = 1_000;
/** Rates and percentiles are of so many rows together. */
const ROWS_PER_WINDOW = 6;

export class Sampler {
  readonly #stage: Stage;
  readonly #crowd: Crowd;
  readonly #everyMs: number;
  #rows = 0;
  #windowAt = performance.now();
  #totalBefore = 0;

  constructor(stage: Stage, crowd: Crowd, everyMs: number) {
    this.#stage = stage;
    this.#crowd = crowd;
    this.#everyMs = everyMs;
  }

  async take(): Promise<Values> {
    const servers = await Promise.all([readRedis(this.#stage), readPostgres(this.#stage), readGateway(this.#stage)]);
    const values: Values = Object.assign({}, ...servers);
    for (const { name, last } of this.#crowd.clients) {
      if (last === undefined || this.#isStale(last.at)) continue;
      addSelf(values, { panel: "client", series: name, self: last.reading.self });
      values[`client-waiting/${name}`] = last.reading.waiting;
    }
    const { self, at } = this.#stage.gateway.last;
    if (self !== undefined && !this.#isStale(at)) addSelf(values, { panel: "gateway", series: "gateway", self });
    this.#rows++;
    if (this.#rows % ROWS_PER_WINDOW === 0) this.#addPace(values);
    return values;
  }

  #isStale(at: number): boolean {
    return performance.now() - at > Math.max(STALE_AFTER_MS, STALE_AFTER * this.#everyMs);
  }

  #addPace(values: Values): void {
    const now = performance.now();
    const total = this.#crowd.total;
    values["operations/all"] = (total - this.#totalBefore) / ((now - this.#windowAt) / 1_000);
    this.#totalBefore = total;
    this.#windowAt = now;
    const latencies: Readonly<Record<Timing, Counts>> = this.#crowd.takeLatencies();
    for (const name of timings) {
      const p99Ms = quantileMs(latencies[name], 0.99);
      if (p99Ms !== undefined) values[`${name}-p99/all`] = p99Ms;
    }
  }
}

function addSelf(values: Values, { panel, series, self }: { panel: string; series: string; self: SelfReading }): void {
  const { rssMb, heapMb, keptMb, codeMb, externalMb, handles, timers, fds, threads, lagMs } = self;
  const memory = { rss: rssMb, heap: heapMb, kept: keptMb, code: codeMb, external: externalMb };
  const gauges = { ...memory, handles, timers, fds, threads, lag: lagMs };
  for (const [name, value] of Object.entries(gauges)) if (value !== undefined) values[`${panel}-${name}/${series}`] = value;
}
