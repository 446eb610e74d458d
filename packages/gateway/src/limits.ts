// How much the API and the store take on at a time, and how long they wait. Three of these can be set
// (settings/settings.ts); nobody has a reason to move the others, but tests do, to see them reached.

/** Of the API. */
export const serverLimits = {
  // Some hundred MB of sockets; a machine that has fewer files to open refuses earlier by itself. For
  // a further one, one on which nothing is asked is closed.
  maxConnections: 10_000,
  // Whoever takes longer to send a header holds a connection for nothing.
  headersTimeoutMs: 10_000,
  // The largest body by a slow line.
  requestTimeoutMs: 30_000,
};

export type ServerLimits = Readonly<typeof serverLimits>;

const DAY_MS = 86_400_000;

/** How long anything takes grows with the way to Postgres, so all times are told by one of them. */
function limitsFor(writeTimeoutMs: number) {
  const share = (part: number): number => Math.max(1, Math.floor(writeTimeoutMs * part));
  return {
    /** Connections that read. */
    poolSize: 8,
    /**
     * Connections for single writes, and as many again for transactions. One is on its way while
     * Postgres commits the other. More make smaller batches, which cost more.
     */
    statementsInFlight: 2,
    /** From here on a row costs no less in a larger statement, and its neighbours wait for it longer. */
    maxBatchRows: 128,
    maxBatchBytes: 1_000_000,
    /**
     * Accepted and not answered; beyond it the answer is unavailable/overloaded. Some seconds of
     * writes: one that came later would not be sent in time.
     */
    maxQueuedWrites: 10_000,
    maxQueuedBytes: 64_000_000,
    /** A write that was not sent within this time is not sent at all. */
    maxWaitMs: writeTimeoutMs,
    /**
     * The gateway's own timer from sending to answer; then outcome_unknown, and the connection is
     * destroyed.
     */
    writeTimeoutMs,
    /** Postgres's own timer. Shorter than the one above, so that Postgres can say "not applied" first. */
    statementTimeoutMs: share(0.8),
    readTimeoutMs: writeTimeoutMs,
    connectTimeoutMs: share(0.4),
    /**
     * How long a statement waits for a row that another transaction has locked; then contention. A
     * write that waited longer would be ended before it hears 409.
     */
    batchLockWaitMs: Math.min(share(0.5), Math.max(100, share(0.02))),
    /** How long an entry of the history is kept. */
    historyRetentionMs: 3_650 * DAY_MS,
    /**
     * Of a stored document: as sent when it is put, as answered when a patch makes it. Postgres
     * writes a document anew with each change of it.
     */
    documentLimitBytes: 16 * 1024 * 1024,
  };
}

export type StoreLimits = Readonly<ReturnType<typeof limitsFor>>;

export const presetLimits: StoreLimits = limitsFor(5_000);

export function storeLimits(given: { readonly [Limit in keyof StoreLimits]?: number | undefined }): StoreLimits {
  const limits = limitsFor(given.writeTimeoutMs ?? presetLimits.writeTimeoutMs);
  const entries = Object.entries(limits).map(([limit, preset]) => [limit, given[limit as keyof StoreLimits] ?? preset]);
  return Object.fromEntries(entries) as unknown as StoreLimits;
}
