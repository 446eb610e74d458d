// How long things took, in buckets whose bounds grow by a tenth, so that a process which measures
// for hours keeps a fixed number of counts.

const FIRST_MS = 0.05;
const GROWTH = 1.1;
const BUCKETS = 160;

/** Counts by bucket, as sparse pairs: plain data for a message. */
export type Counts = readonly (readonly [bucket: number, count: number])[];

export class Latency {
  readonly #counts = new Array<number>(BUCKETS).fill(0);

  add(elapsedMs: number): void {
    const bucket = elapsedMs <= FIRST_MS ? 0 : Math.ceil(Math.log(elapsedMs / FIRST_MS) / Math.log(GROWTH));
    this.#raise(Math.min(bucket, BUCKETS - 1), 1);
  }

  addAll(counts: Counts): void {
    for (const [bucket, count] of counts) this.#raise(bucket, count);
  }

  /** What was counted since the last call, which is forgotten. */
  take(): Counts {
    const taken = [...this.#counts.entries()].filter(([, count]) => count > 0);
    this.#counts.fill(0);
    return taken;
  }

  #raise(bucket: number, by: number): void {
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + by;
  }
}

/** The upper bound, in milliseconds, of the bucket below which the part lies. */
export function quantileMs(counts: Counts, part: number): number | undefined {
  const total = counts.reduce((sum, [, count]) => sum + count, 0);
  let below = 0;
  for (const [bucket, count] of [...counts].sort(([a], [b]) => a - b)) {
    below += count;
    if (below >= part * total) return FIRST_MS * GROWTH ** bucket;
  }
  return undefined;
}
