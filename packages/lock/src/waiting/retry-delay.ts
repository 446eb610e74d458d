// When a waiting caller asks again: after a lost vote, after a notice of release, after a holder's
// key has run out. Pure: chance comes in as a number from 0 to 1.

/** The bounds of a back-off. */
export interface BackOff {
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

/**
 * How long the waiters that are notified first have the lock to themselves: enough for their
 * requests to reach the nodes.
 */
export const HEAD_START_MS = 4;

/**
 * How long a process that has just released a resource leaves it to other waiters: enough for a
 * backup to take over as well. It listens meanwhile.
 */
export const YIELD_MS = 3 * HEAD_START_MS;

/**
 * Two requests for the same lock that are apart by about so much reach all nodes in the same order,
 * and one of them wins.
 */
const APART_MS = 0.5;
const WIDEST_MS = 50;

/**
 * The delay of a waiter that was notified together with so many others, so that their requests do
 * not meet. Alone: none.
 */
export function spreadDelayMs(others: number, chance: number): number {
  return chance * Math.min(WIDEST_MS, others * APART_MS);
}

/**
 * The delay of a waiter that was notified as the backup: it takes over if the first slot does not.
 */
export function backupDelayMs(chance: number): number {
  return HEAD_START_MS * (1.5 + chance);
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
