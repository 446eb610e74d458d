// What the gateway counts, for Prometheus. The hot path only adds to plain numbers; they become
// metrics when they are scraped. Labels come from fixed lists: a resource, token or credential as a
// label would be a memory leak.
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Verdict, WriteOperation } from "../fence/verdict.js";
import type { StoreEvent, StoreStats } from "../fenced-store.js";

export interface Sources {
  readonly stats: () => StoreStats | undefined;
  readonly requestsInFlight: () => number;
  readonly bodyBytesHeld: () => number;
}

const operations: readonly WriteOperation[] = ["put", "patch", "delete", "seal"];
const alarming: readonly Verdict["kind"][] = ["outcome_unknown", "unavailable", "stale"];
const latencyBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const rowBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

export class Metrics {
  readonly registry = new Registry();
  readonly #requests = new Tally();
  readonly #writes = new Tally();
  readonly #latency: Histogram<"route">;
  readonly #batchRows: Histogram;
  readonly #batchSeconds: Histogram<"outcome">;
  readonly #raises: Counter;
  readonly #verifications: Counter<"answer">;
  readonly #retries: Counter<"code">;
  readonly #connectionErrors: Counter;

  constructor(sources: Sources) {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    tallied(this.registry, this.#requests, {
      name: "palisade_requests_total",
      help: "Requests by route and outcome",
      labelNames: ["route", "outcome"],
    });
    tallied(this.registry, this.#writes, {
      name: "palisade_writes_total",
      help: "Single writes, seals and operations of transactions by outcome",
      labelNames: ["op", "outcome"],
    });
    // A counter that appears with its first event has not risen, for Prometheus: the first event
    // of what is worth an alert must count.
    for (const op of operations) for (const outcome of alarming) this.#writes.add(op, outcome, 0);
    this.#latency = new Histogram({
      name: "palisade_request_duration_seconds",
      help: "From the header to the answer",
      labelNames: ["route"],
      buckets: latencyBuckets,
      registers,
    });
    this.#batchRows = new Histogram({ name: "palisade_batch_rows", help: "Writes per statement", buckets: rowBuckets, registers });
    this.#batchSeconds = new Histogram({
      name: "palisade_batch_duration_seconds",
      help: "Statements by outcome",
      labelNames: ["outcome"],
      buckets: latencyBuckets,
      registers,
    });
    this.#raises = new Counter({ name: "palisade_fence_raises_total", help: "Writes and seals that raised a fence", registers });
    this.#verifications = new Counter({
      name: "palisade_verifications_total",
      help: "Raises that were checked with the lock",
      labelNames: ["answer"],
      registers,
    });
    this.#verifications.labels("unissued").inc(0); // As above.
    this.#retries = new Counter({
      name: "palisade_retried_rows_total",
      help: "Rows sent again after a race in the database",
      labelNames: ["code"],
      registers,
    });
    this.#connectionErrors = new Counter({
      name: "palisade_connection_errors_total",
      help: "Connections to Postgres that failed",
      registers,
    });
    gauges(registers, sources);
  }

  requestDone(route: string, outcome: string, durationMs: number): void {
    this.#requests.add(route, outcome);
    this.#latency.labels(route).observe(durationMs / 1_000);
  }

  writeDone(op: string, outcome: string): void {
    this.#writes.add(op, outcome);
  }

  /** By what became of them, whatever they were. */
  writeTotals(): ReadonlyMap<string, number> {
    const totals = new Map<string, number>();
    for (const [, outcome, count] of this.#writes.entries()) totals.set(outcome, (totals.get(outcome) ?? 0) + count);
    return totals;
  }

  storeEvent(event: StoreEvent): void {
    switch (event.kind) {
      case "batch":
        this.#batchRows.observe(event.rows);
        this.#batchSeconds.labels(event.outcome).observe(event.durationMs / 1_000);
        break;
      case "raised":
        this.#raises.inc();
        break;
      case "verified":
        this.#verifications.labels(event.answer).inc();
        break;
      case "retried":
        this.#retries.labels(event.code).inc(event.rows);
        break;
      case "connection_error":
        this.#connectionErrors.inc();
        break;
      case "refused_by_database":
        break; // Counted with the writes, as unavailable.
    }
  }

  /** Everything, in Prometheus' text format. */
  async text(): Promise<string> {
    return this.registry.metrics();
  }
}

/** Counts by two labels, without making a string or an object per count. */
class Tally {
  readonly #counts = new Map<string, Map<string, number>>();

  add(first: string, second: string, count = 1): void {
    let row = this.#counts.get(first);
    if (row === undefined) {
      row = new Map();
      this.#counts.set(first, row);
    }
    row.set(second, (row.get(second) ?? 0) + count);
  }

  *entries(): Generator<readonly [string, string, number]> {
    for (const [first, row] of this.#counts) for (const [second, count] of row) yield [first, second, count];
  }
}

function tallied(registry: Registry, tally: Tally, definition: { name: string; help: string; labelNames: [string, string] }): void {
  new Counter({
    ...definition,
    registers: [registry],
    collect() {
      this.reset();
      for (const [first, second, count] of tally.entries()) this.labels(first, second).inc(count);
    },
  });
}

function gauges(registers: Registry[], sources: Sources): void {
  const gauge = (name: string, help: string, value: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  };
  gauge("palisade_requests_in_flight", "Requests being answered", sources.requestsInFlight);
  gauge("palisade_body_bytes_held", "Bytes of bodies of requests being answered", sources.bodyBytesHeld);
  gauge("palisade_queued_writes", "Writes waiting for a statement", () => sources.stats()?.queuedWrites ?? 0);
  gauge("palisade_queued_bytes", "Bytes of writes waiting for a statement", () => sources.stats()?.queuedBytes ?? 0);
  gauge("palisade_statements_in_flight", "Statements for writes under way", () => sources.stats()?.statementsInFlight ?? 0);
  gauge("palisade_pool_connections", "Connections to Postgres", () => sources.stats()?.connections.total ?? 0);
  gauge("palisade_pool_idle_connections", "Connections to Postgres without work", () => sources.stats()?.connections.idle ?? 0);
  gauge("palisade_pool_waiting", "Requests waiting for a connection to Postgres", () => sources.stats()?.connections.waiting ?? 0);
}
