// How long one caller waits, and what ends it early.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { WaitBudget } from "../../../src/waiting/wait-budget.js";
import { ManualClock } from "../manual-clock.js";

const waiters = () => ({ closed: false, sleeping: new Set<WaitBudget>() });

test("a thousand waiters with one signal put one listener on it, and none when they are awake", async () => {
  const aborter = new AbortController();
  const { signal } = aborter;
  const sleeping = Array.from({ length: 1_000 }, () => new WaitBudget(new ManualClock(), waiters(), { waitMs: 1_000, signal }));
  const ended = sleeping.map((waiter) => waiter.sleep(1_000));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  sleeping[0]?.wake();
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  aborter.abort();
  await Promise.all(ended);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a signal is left alone when its last sleeper wakes by itself", async () => {
  const { signal } = new AbortController();
  const clock = new ManualClock();
  const sleeping = new WaitBudget(clock, waiters(), { waitMs: 1_000, signal }).sleep(10);
  clock.advance(10);
  await sleeping;
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a wait without end outlasts the longest timer there is", async () => {
  const clock = new ManualClock();
  let awake = false;
  const waiter = new WaitBudget(clock, waiters(), { waitMs: Number.POSITIVE_INFINITY, signal: undefined });
  const sleeping = waiter.sleep(waiter.leftMs).then(() => {
    awake = true;
  });
  clock.advance(2 ** 31);
  await Promise.resolve();
  expect(awake).toBe(false);
  waiter.wake();
  await sleeping;
});
