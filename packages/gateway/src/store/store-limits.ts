// Every limit of the store, its default and its range. A wrong value is a RangeError that names it,
// before anything is opened.

export interface StoreLimits {
  /** Connections that read. */
  readonly poolSize: number;
  /** Connections for single writes, as many again for transactions, and for slow rows. */
  readonly statementsInFlight: number;
  readonly maxBatchRows: number;
  readonly maxBatchBytes: number;
  /** Accepted and not answered; beyond it the answer is unavailable/overloaded. */
  readonly maxQueuedWrites: number;
  readonly maxQueuedBytes: number;
  /** A write that was not sent within this time is not sent at all. */
  readonly maxWaitMs: number;
  /**
   * The gateway's own timer from sending to answer; then outcome_unknown, and the connection is
   * destroyed.
   */
  readonly writeTimeoutMs: number;
  /**
   * Postgres's own timer. Shorter than writeTimeoutMs, so that Postgres can say "not applied"
   * first.
   */
  readonly statementTimeoutMs: number;
  readonly readTimeoutMs: number;
  readonly connectTimeoutMs: number;
  /** How long a write waits for a row that another transaction has locked; then contention. */
  readonly lockWaitMs: number;
  /**
   * How long it does so in the company of others, before it waits by itself. At most lockWaitMs.
   */
  readonly batchLockWaitMs: number;
  /** How long a used idempotency key is remembered. */
  readonly idempotencyRetentionMs: number;
  /** How long an entry of the history is kept. */
  readonly historyRetentionMs: number;
  /** How long, and how many of, the writes that were refused are kept. */
  readonly refusedRetentionMs: number;
  readonly refusedRows: number;
  /** Of a stored document: as sent when it is put, as answered when a patch makes it. */
  readonly documentLimitBytes: number;
}

interface Range {
  readonly preset: number;
  readonly from: number;
  readonly to: number;
}

const DAY_MS = 86_400_000;
const ranges: { readonly [Limit in keyof StoreLimits]: Range } = {
  poolSize: { preset: 8, from: 1, to: 1_000 },
  statementsInFlight: { preset: 2, from: 1, to: 100 },
  maxBatchRows: { preset: 128, from: 1, to: 1_000 },
  maxBatchBytes: { preset: 1_000_000, from: 1_000, to: 64_000_000 },
  maxQueuedWrites: { preset: 10_000, from: 1, to: 1_000_000 },
  maxQueuedBytes: { preset: 64_000_000, from: 1_000, to: 4_000_000_000 },
  maxWaitMs: { preset: 5_000, from: 1, to: 600_000 },
  writeTimeoutMs: { preset: 5_000, from: 10, to: 600_000 },
  statementTimeoutMs: { preset: 4_000, from: 1, to: 600_000 },
  readTimeoutMs: { preset: 5_000, from: 10, to: 600_000 },
  connectTimeoutMs: { preset: 2_000, from: 10, to: 600_000 },
  lockWaitMs: { preset: 500, from: 1, to: 600_000 },
  batchLockWaitMs: { preset: 100, from: 1, to: 600_000 },
  idempotencyRetentionMs: { preset: DAY_MS, from: 60_000, to: 365 * DAY_MS },
  historyRetentionMs: { preset: 3_650 * DAY_MS, from: 60_000, to: 36_500 * DAY_MS },
  refusedRetentionMs: { preset: 7 * DAY_MS, from: 1_000, to: 3_650 * DAY_MS },
  refusedRows: { preset: 100_000, from: 1, to: 10_000_000 },
  documentLimitBytes: { preset: 16 * 1024 * 1024, from: 1, to: 256 * 1024 * 1024 },
};

/** Range and default of a limit, for the setting of the gateway that has its name. */
export function storeRange(limit: keyof StoreLimits): { readonly range: readonly [number, number]; readonly otherwise: number } {
  const { from, to, preset } = ranges[limit];
  return { range: [from, to], otherwise: preset };
}

export function storeLimits(given: { readonly [Limit in keyof StoreLimits]?: number | undefined }): StoreLimits {
  const limits: Record<string, number> = {};
  for (const [name, { preset, from, to }] of Object.entries(ranges)) {
    const value = given[name as keyof StoreLimits] ?? preset;
    if (!Number.isInteger(value) || value < from || value > to)
      throw new RangeError(`${name} is an integer from ${from} to ${to}, not ${String(value)}`);
    limits[name] = value;
  }
  const { writeTimeoutMs = 0, lockWaitMs = 0, batchLockWaitMs = 0 } = limits;
  // Only limits that were not given are adjusted. A statement timeout above the write timeout would
  // never be reached, and a shorter write timeout shortens the wait for rows.
  if (given.statementTimeoutMs === undefined) limits.statementTimeoutMs = Math.floor(writeTimeoutMs * 0.8);
  if (given.lockWaitMs === undefined) limits.lockWaitMs = Math.min(lockWaitMs, Math.max(1, Math.floor(writeTimeoutMs * 0.5)));
  limits.batchLockWaitMs = Math.min(batchLockWaitMs, limits.lockWaitMs ?? 0);
  return limits as unknown as StoreLimits;
}
