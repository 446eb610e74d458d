// When a lease is renewed.
import { expect, test } from "vitest";
import { MIN_RENEWAL_DELAY_MS, onGrid, renewAgainInMs, renewInMs } from "../../../src/lease/held-lease.js";

const chances = [0, 0.3, 0.999];

test("L1 a renewal comes early enough for several more, should its answer be unknown", () => {
  for (const chance of chances) {
    let passedMs = renewInMs(1_000, chance);
    for (let unknowns = 1; unknowns <= 4; unknowns++) passedMs += renewAgainInMs(1_000, unknowns, chance);
    expect(passedMs).toBeLessThan(750);
  }
});

test("the pause after unknown answers doubles up to a tenth of the ttl, jitter aside", () => {
  expect([1, 2, 3, 4, 40].map((unknowns) => renewAgainInMs(1_000, unknowns, 0.5))).toEqual([20, 40, 80, 100, 100]);
});

test("leases due at about the same time are renewed in the same turn, and never sooner than the floor", () => {
  expect(onGrid(1_000, 301, 10_000)).toBe(onGrid(1_000, 318, 10_000));
  expect(onGrid(1_000, 0, 10_000)).toBe(1_000 + MIN_RENEWAL_DELAY_MS);
});
