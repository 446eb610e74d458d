// When a waiting caller asks again: after a lost vote, after a notice of release, after a holder's
// key has run out. Pure: chance comes in as a number from 0 to 1.

/** The bounds of a back-off. */
interface BackOff {
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

/** How long a node keeps a released lock for the first in the queue (queue.lua). */
export const RESERVED_MS = 40;
/** How long a node keeps a ticket that is not asked for again (claim.lua). */
export const TICKET_MS = 90_000;

/** After which nodes that tell different waiters that they are first are asked all the same. */
export function disagreementDelayMs(chance: number): number {
  return RESERVED_MS * (0.4 + 0.3 * chance);
}

/** When the one behind the first in the queue looks whether that one came. */
export function backupDelayMs(chance: number): number {
  return RESERVED_MS * (1.2 + 0.3 * chance);
}

/**
 * When a waiter that was refused because the lock was reserved looks whether it was taken: late,
 * since one that was told comes first.
 */
export function afterReservationMs(): number {
  return 3 * RESERVED_MS;
}

/**
 * How long before a holder's time is over a waiter looks whether it is held still. A release after
 * that look is seen at the end, by its reservation.
 */
export function beforeExpiryMs(): number {
  return RESERVED_MS / 2;
}

/** When a waiter asks again so that its tickets stay. */
export function refreshMs(chance: number): number {
  return TICKET_MS * (0.3 + 0.1 * chance);
}

const WIDEST_MS = 50;

/** The delay of one of many that the same event wakes, so that their requests do not meet. */
export function spreadDelayMs(chance: number): number {
  return chance * WIDEST_MS;
}

/**
 * The delay after so many lost votes or failed rounds in a row (1, 2, …): the window doubles, and
 * the random part ends a series of collisions.
 */
export function backOffMs(failures: number, retry: BackOff, chance: number): number {
  const windowMs = Math.min(retry.maxDelayMs, retry.minDelayMs * 2 ** Math.min(failures - 1, 30));
  return windowMs * (0.1 + 0.9 * chance);
}

/** How long a waiter sleeps without a notice. */
export function safetyPollMs(retry: BackOff, chance: number): number {
  return retry.maxDelayMs * (0.5 + 0.5 * chance);
}

/**
 * Milliseconds times nodes, so that every node is asked equally often, however many there are: a
 * look at one node costs it five commands (the call, and four in the script), so a waiter costs
 * each node less than one a second.
 */
const LOOK_MS = 6_000;

/**
 * How long a waiter that would be notified by a quorum sleeps before it looks at one of the nodes.
 */
export function lookMs(nodes: number, retry: BackOff, chance: number): number {
  return Math.max(safetyPollMs(retry, chance), (LOOK_MS / nodes) * (0.9 + 0.2 * chance));
}

/**
 * How long to sleep for a lock that runs out in so many milliseconds: a little longer, since nodes
 * expire in whole milliseconds, and spread over its waiters.
 */
export function afterExpiryMs(freeInMs: number, chance: number): number {
  return freeInMs + 1 + 3 * chance;
}
