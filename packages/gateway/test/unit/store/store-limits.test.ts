// Limits are checked before anything is opened, and a wrong one is named.
import { expect, test } from "vitest";
import { openStore } from "../../../src/postgres-store.js";
import { storeLimits } from "../../../src/store/store-limits.js";

test("every limit has a default, and Postgres's timer is shorter than our own", () => {
  const limits = storeLimits({});
  expect(Object.values(limits).every((limit) => Number.isInteger(limit) && limit > 0)).toBe(true);
  expect(limits.lockWaitMs).toBeLessThan(limits.statementTimeoutMs);
  expect(limits.statementTimeoutMs).toBeLessThan(limits.writeTimeoutMs);
});

test("a shorter time for writes shortens what must be shorter still, unless that was asked for", () => {
  expect(storeLimits({ writeTimeoutMs: 100 })).toMatchObject({ statementTimeoutMs: 80, lockWaitMs: 50 });
  expect(storeLimits({ writeTimeoutMs: 100, lockWaitMs: 90, statementTimeoutMs: 95 })).toMatchObject({
    statementTimeoutMs: 95,
    lockWaitMs: 90,
  });
});

test("a longer time for writes lengthens Postgres's timer, which would otherwise end the write before it", () => {
  expect(storeLimits({ writeTimeoutMs: 40_000 })).toMatchObject({ statementTimeoutMs: 32_000, lockWaitMs: 500 });
  expect(storeLimits({ writeTimeoutMs: 600_000 })).toMatchObject({ statementTimeoutMs: 480_000 });
});

test("a value out of its range is a RangeError that names it", async () => {
  for (const value of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => storeLimits({ maxBatchRows: value })).toThrow(/^maxBatchRows is an integer from 1 to/);
  await expect(openStore({ databaseUrl: "postgres://localhost:1/none", statementsInFlight: 0 })).rejects.toThrow("statementsInFlight");
});
