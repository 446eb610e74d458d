// When to try again. Pure: chance comes in as a number from 0 to 1. Nothing here knows why somebody waits.
import type { RetryOptions } from "./policy.js";

/** Apart by about so much, two questions for the same lock reach all nodes in the same order, and one of them wins. */
const APART_MS = 0.5;
/** However many wait: nobody leaves a free lock alone for longer. */
const WIDEST_MS = 50;

/** Over how long those who heard of a release at the same moment spread their questions, when so many others heard it too. Alone: not at all. */
export function drawWindowMs(others: number): number {
  return Math.min(WIDEST_MS, others * APART_MS);
}

/** The delay one of them draws. Who has lost more draws than others draws from a shorter window, so that nobody loses for ever. */
export function drawDelayMs(others: number, lostDraws: number, chance: number): number {
  return (chance * drawWindowMs(others)) / (1 + lostDraws / 2);
}

/** The delay after so many fruitless attempts in a row (1, 2, …): the window doubles, and the draw keeps two who collided from colliding for ever. */
export function backOffMs(fruitless: number, retry: Required<RetryOptions>, chance: number): number {
  const windowMs = Math.min(retry.maxDelayMs, retry.minDelayMs * 2 ** Math.min(fruitless - 1, 30));
  return windowMs * (0.1 + 0.9 * chance);
}

/** How long a waiter sleeps without being told anything. */
export function safetyPollMs(retry: Required<RetryOptions>, chance: number): number {
  return retry.maxDelayMs * (0.5 + 0.5 * chance);
}

/** How long to sleep for a lock that runs out in so many milliseconds: a little longer, since nodes expire in whole milliseconds, and spread over those who wait for it. */
export function afterExpiryMs(freeInMs: number, chance: number): number {
  return freeInMs + 1 + 3 * chance;
}
