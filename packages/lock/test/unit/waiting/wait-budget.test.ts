// How long one caller waits, and what ends it early.
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { Patience } from "../../../src/waiting/wait-budget.js";
import { ManualClock } from "../manual-clock.js";

const dormitory = () => ({ closed: false, sleepers: new Set<Patience>() });

test("a thousand sleepers with one signal put one listener on it, and none when they are awake", async () => {
  const aborter = new AbortController();
  const { signal } = aborter;
  const sleepers = Array.from({ length: 1_000 }, () => new Patience(new ManualClock(), dormitory(), { waitMs: 1_000, signal }));
  const sleeping = sleepers.map((sleeper) => sleeper.sleep(1_000));
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  sleepers[0]?.wake();
  expect(getEventListeners(signal, "abort")).toHaveLength(1);
  aborter.abort();
  await Promise.all(sleeping);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("a signal is left alone when its last sleeper wakes by itself", async () => {
  const { signal } = new AbortController();
  const clock = new ManualClock();
  const sleeping = new Patience(clock, dormitory(), { waitMs: 1_000, signal }).sleep(10);
  clock.advance(10);
  await sleeping;
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

test("patience without end outlasts the longest timer there is", async () => {
  const clock = new ManualClock();
  let awake = false;
  const sleeper = new Patience(clock, dormitory(), { waitMs: Number.POSITIVE_INFINITY, signal: undefined });
  const sleeping = sleeper.sleep(sleeper.leftMs).then(() => {
    awake = true;
  });
  clock.advance(2 ** 31);
  await Promise.resolve();
  expect(awake).toBe(false);
  sleeper.wake();
  await sleeping;
});
