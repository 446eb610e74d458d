// When to try again.
import { expect, test } from "vitest";
import { backOffMs, drawDelayMs, drawWindowMs, safetyPollMs } from "../../src/pacing.js";

const retry = { tries: Number.POSITIVE_INFINITY, minDelayMs: 4, maxDelayMs: 500 };

test("who waits alone asks at once; many spread out, but not for long", () => {
  expect(drawDelayMs(0, 0, 0.99)).toBe(0);
  expect(drawWindowMs(10)).toBeGreaterThan(drawWindowMs(2));
  expect(drawWindowMs(100_000)).toBeLessThanOrEqual(50);
});

test("who has lost more draws asks sooner", () => {
  expect(drawDelayMs(10, 8, 0.5)).toBeLessThan(drawDelayMs(10, 0, 0.5));
});

test("the back-off doubles up to its bound and is never the same for two", () => {
  expect(backOffMs(1, retry, 1)).toBe(4);
  expect(backOffMs(3, retry, 1)).toBe(16);
  expect(backOffMs(1_000, retry, 1)).toBe(500);
  expect(backOffMs(3, retry, 0.2)).not.toBe(backOffMs(3, retry, 0.9));
  expect(backOffMs(1, retry, 0)).toBeGreaterThan(0);
});

test("the safety poll comes within its bound", () => {
  expect(safetyPollMs(retry, 0)).toBe(250);
  expect(safetyPollMs(retry, 1)).toBe(500);
});
