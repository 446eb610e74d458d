// What is left of a lease's time after the drift allowance. Pure: instants come in as numbers. The
// time passed is read from two clocks and the larger value counts: the monotonic clock stands still
// while a machine is suspended, the wall clock may be set back (L1).

/**
 * The drift allowance: by how much the clocks of client and nodes may differ over a ttl, and 2 ms
 * for the granularity of the nodes' expiry and of our own timers.
 */
export function driftMs(ttlMs: number, driftFactor: number): number {
  return ttlMs * driftFactor + 2;
}

/**
 * How long a lease lasts, counted from the moment before the first byte of its grant request was
 * sent.
 */
export function validityMs(ttlMs: number, driftFactor: number): number {
  return ttlMs - driftMs(ttlMs, driftFactor);
}

/** The shortest ttl whose lease lasts so long. */
export function neededTtlMs(lastsMs: number, driftFactor: number): number {
  return (lastsMs + 2) / (1 - driftFactor);
}

/** What must be left of a lease when it is granted: what was configured, or a tenth of its ttl. */
export function minValidityMs(configuredMs: number | undefined, ttlMs: number): number {
  return configuredMs ?? ttlMs / 10;
}

/**
 * What is left of something that lasts `lastsMs`, after so much time has passed on either clock.
 * Negative when it is over.
 */
export function remainingMs(lastsMs: number, monotonicPassedMs: number, wallPassedMs: number): number {
  return lastsMs - Math.max(monotonicPassedMs, wallPassedMs);
}
