// What is left of a lease's time. Pure: instants come in as numbers. Two clocks are read, and the one by which more time has passed is believed: the monotonic
// clock stands still while a machine is suspended, the wall clock may be set back (L1).

/** By how much the clocks of client and nodes may have run apart over a ttl; 2 ms for the granularity of the nodes' expiry and of our own timers. */
export function driftMs(ttlMs: number, driftFactor: number): number {
  return ttlMs * driftFactor + 2;
}

/** How long a lease lasts, counted from the moment before the first byte of its grant left. */
export function validityMs(ttlMs: number, driftFactor: number): number {
  return ttlMs - driftMs(ttlMs, driftFactor);
}

/** The shortest ttl that lasts so long. */
export function neededTtlMs(lastsMs: number, driftFactor: number): number {
  return (lastsMs + 2) / (1 - driftFactor);
}

/** What is left of something that lasts `lastsMs`, after so much time has passed on either clock. Negative when it is over. */
export function remainingMs(lastsMs: number, monotonicPassedMs: number, wallPassedMs: number): number {
  return lastsMs - Math.max(monotonicPassedMs, wallPassedMs);
}
