// When to try again.
import { expect, test } from "vitest";
import { backOffMs, backupDelayMs, HEAD_START_MS, safetyPollMs, spreadDelayMs } from "../../../src/waiting/retry-delay.js";

const retry = { tries: Number.POSITIVE_INFINITY, minDelayMs: 4, maxDelayMs: 500 };

test("a waiter that is alone asks at once; many spread out, but not for long", () => {
  expect(spreadDelayMs(0, 0.99)).toBe(0);
  expect(spreadDelayMs(10, 0.5)).toBeGreaterThan(spreadDelayMs(2, 0.5));
  expect(spreadDelayMs(100_000, 1)).toBeLessThanOrEqual(50);
});

test("the backup leaves the first wake slot its head start", () => {
  for (const chance of [0, 0.5, 0.999]) expect(backupDelayMs(chance)).toBeGreaterThan(HEAD_START_MS);
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
