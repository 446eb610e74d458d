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
  readonly answerBytesHeld: () => number;
}

const operations: readonly WriteOperation[] = ["put", "patch", "delete", "seal"];
const alarming: readonly Verdict["kind"][] = ["outcome_unknown", "unavailable", "stale"];
const latencyBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const rowBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

export class Metrics {
  readonly registry = new Registry();
  readonly #requests = this.#tally("palisade_requests_total", "Requests by route and outcome", ["route", "outcome"]);
  readonly #writes = this.#tally("palisade_writes_total", "Single writes, seals and operations of transactions by outcome", [
    "op",
    "outcome",
  ]);
  readonly #latency = this.#histogram("palisade_request_duration_seconds", "From the header to the answer", {
    labelNames: ["route"],
    buckets: latencyBuckets,
  });
  readonly #batchRows = this.#histogram("palisade_batch_rows", "Writes per statement", { labelNames: [], buckets: rowBuckets });
  readonly #batchSeconds = this.#histogram("palisade_batch_duration_seconds", "Statements by outcome", {
    labelNames: ["outcome"],
    buckets: latencyBuckets,
  });
  readonly #raises = this.#counter("palisade_fence_raises_total", "Writes and seals that raised a fence");
  readonly #verifications = this.#counter("palisade_verifications_total", "Raises that were checked with the lock", "answer");
  readonly #retries = this.#counter("palisade_retried_rows_total", "Rows sent again after a race in the database", "code");
  readonly #connectionErrors = this.#counter("palisade_connection_errors_total", "Connections to Postgres that failed");

  constructor({ stats, requestsInFlight, bodyBytesHeld, answerBytesHeld }: Sources) {
    collectDefaultMetrics({ register: this.registry });
    // A counter that appears with its first event has not risen, for Prometheus: the first event
    // of what is worth an alert must count.
    for (const op of operations) for (const outcome of alarming) this.#writes.add(op, outcome, 0);
    this.#verifications.labels("unissued").inc(0);
    this.#gauge("palisade_requests_in_flight", "Requests being answered", requestsInFlight);
    this.#gauge("palisade_body_bytes_held", "Bytes of bodies of requests being answered", bodyBytesHeld);
    this.#gauge("palisade_answer_bytes_held", "Bytes of answers that are being read or sent", answerBytesHeld);
    this.#gauge("palisade_queued_writes", "Writes waiting for a statement", () => stats()?.queuedWrites);
    this.#gauge("palisade_queued_bytes", "Bytes of writes waiting for a statement", () => stats()?.queuedBytes);
    this.#gauge("palisade_statements_in_flight", "Statements for writes under way", () => stats()?.statementsInFlight);
    this.#gauge("palisade_pool_connections", "Connections to Postgres", () => stats()?.connections.total);
    this.#gauge("palisade_pool_idle_connections", "Connections to Postgres without work", () => stats()?.connections.idle);
    this.#gauge("palisade_pool_waiting", "Requests waiting for a connection to Postgres", () => stats()?.connections.waiting);
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

  #counter(name: string, help: string, ...labelNames: readonly string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, shape: { readonly labelNames: string[]; readonly buckets: number[] }): Histogram {
    return new Histogram({ name, help, ...shape, registers: [this.registry] });
  }

  /** Undefined is 0: before the store is open there is nothing. */
  #gauge(name: string, help: string, value: () => number | undefined): void {
    new Gauge({
      name,
      help,
      registers: [this.registry],
      collect() {
        this.set(value() ?? 0);
      },
    });
  }

  #tally(name: string, help: string, labelNames: readonly [string, string]): Tally {
    const tally = new Tally();
    new Counter({
      name,
      help,
      labelNames,
      registers: [this.registry],
      collect() {
        this.reset();
        for (const [first, second, count] of tally.entries()) this.labels(first, second).inc(count);
      },
    });
    return tally;
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
