// When to try again. Pure: chance comes in as a number from 0 to 1. Nothing here knows why somebody waits.

/** The bounds of a back-off. */
export interface BackOff {
  readonly minDelayMs: number;
  readonly maxDelayMs: number;
}

/** How long those whose turn it is are left alone: enough for their questions to reach the nodes. */
export const HEAD_START_MS = 4;

/** How long a process that has just released a resource leaves it to others who wait: enough for a backup to take over, too. It listens meanwhile. */
export const YIELD_MS = 3 * HEAD_START_MS;

/** Apart by about so much, two questions for the same lock reach all nodes in the same order, and one of them wins. */
const APART_MS = 0.5;
const WIDEST_MS = 50;

/** The delay of one who was told of a release at the same moment as so many others, so that their questions do not meet. Alone: none. */
export function drawDelayMs(others: number, chance: number): number {
  return chance * Math.min(WIDEST_MS, others * APART_MS);
}

/** The delay of one who was told of a release in the second place: it takes over if the first is not there any more. */
export function backupDelayMs(chance: number): number {
  return HEAD_START_MS * (1.5 + chance);
}

/** The delay after so many fruitless attempts in a row (1, 2, …): the window doubles, and the draw keeps two who collided from colliding for ever. */
export function backOffMs(fruitless: number, retry: BackOff, chance: number): number {
  const windowMs = Math.min(retry.maxDelayMs, retry.minDelayMs * 2 ** Math.min(fruitless - 1, 30));
  return windowMs * (0.1 + 0.9 * chance);
}

/** How long a waiter sleeps without being told anything. */
export function safetyPollMs(retry: BackOff, chance: number): number {
  return retry.maxDelayMs * (0.5 + 0.5 * chance);
}

/** How long to sleep for a lock that runs out in so many milliseconds: a little longer, since nodes expire in whole milliseconds, and spread over those who wait for it. */
export function afterExpiryMs(freeInMs: number, chance: number): number {
  return freeInMs + 1 + 3 * chance;
}
