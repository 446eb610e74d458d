// When a lease is renewed. Pure: chance comes in as a number from 0 to 1.

/**
 * Renewed before a third of the ttl is over. Spread widely: ten thousand leases taken at once are
 * more than a node can renew at once.
 */
const RENEW_FROM = 0.15;
const RENEW_TO = 0.36;
/**
 * After an unknown answer it is renewed again after about this part of the ttl, and after twice as
 * long each further time, up to a bound.
 */
const RETRY_FIRST = 0.02;
const RETRY_LAST = 0.1;
/** No renewal sooner than this: a short ttl must not become a busy loop. */
export const MIN_RENEWAL_DELAY_MS = 5;
/**
 * Renewals are due at multiples of this part of the ttl, so that those due at about the same time
 * are sent in the same turn and share one script call per node.
 */
const GRID = 0.002;
const WIDEST_GRID_MS = 50;

/** The delay before the next renewal of a lease that lasts so long. */
export function renewInMs(lastsMs: number, chance: number): number {
  return lastsMs * (RENEW_FROM + (RENEW_TO - RENEW_FROM) * chance);
}

/** The delay after so many unknown answers in a row (1, 2, …). */
export function renewAgainInMs(lastsMs: number, unknowns: number, chance: number): number {
  return lastsMs * Math.min(RETRY_LAST, RETRY_FIRST * 2 ** (unknowns - 1)) * (0.5 + chance);
}

/** The moment, on the grid of leases with this ttl, that is so far from now. */
export function onGrid(now: number, inMs: number, ttlMs: number): number {
  const gridMs = Math.min(WIDEST_GRID_MS, Math.max(1, ttlMs * GRID));
  return Math.max(now + MIN_RENEWAL_DELAY_MS, Math.floor((now + inMs) / gridMs) * gridMs);
}
