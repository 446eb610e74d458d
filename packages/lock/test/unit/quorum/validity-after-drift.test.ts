// What is left of a lease, by the clock that says less.
import { expect, test } from "vitest";
import { driftMs, neededTtlMs, remainingMs, validityMs } from "../../../src/quorum.js";

test("drift is a part of the ttl and two milliseconds", () => {
  expect(driftMs(10_000, 0.01)).toBe(102);
  expect(validityMs(10_000, 0.01)).toBe(9_898);
});

test("L1 time that passed on either clock is over: a suspended machine's monotonic clock stood still", () => {
  expect(remainingMs(9_898, 100, 100)).toBe(9_798);
  expect(remainingMs(9_898, 100, 60_000)).toBeLessThan(0);
  expect(remainingMs(9_898, 60_000, -3_600_000)).toBeLessThan(0);
});

test("L1 for every ttl and drift factor the validity ends before the ttl does", () => {
  for (let ttlMs = 1; ttlMs < 100_000; ttlMs = Math.ceil(ttlMs * 1.3)) {
    for (const factor of [0, 0.01, 0.1, 0.5]) expect(validityMs(ttlMs, factor)).toBeLessThanOrEqual(ttlMs - 2);
  }
});

test("the ttl that is needed for a validity is the one that gives it", () => {
  for (const ttlMs of [5, 100, 10_000, 86_400_000]) expect(neededTtlMs(validityMs(ttlMs, 0.01), 0.01)).toBeCloseTo(ttlMs, 6);
});
