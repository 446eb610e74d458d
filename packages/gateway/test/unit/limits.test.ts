// The limits of a store whose operator has set nothing, or one of them.
import { expect, test } from "vitest";
import { storeLimits } from "../../src/limits.js";

test("each time is shorter than the one that would hide it, however long a write may take", () => {
  for (const writeTimeoutMs of [undefined, 10, 100, 5_000, 600_000]) {
    const limits = storeLimits({ writeTimeoutMs });
    expect(Object.values(limits).every((limit) => Number.isInteger(limit) && limit > 0)).toBe(true);
    expect(limits.batchLockWaitMs).toBeLessThan(limits.statementTimeoutMs);
    expect(limits.statementTimeoutMs).toBeLessThan(limits.writeTimeoutMs);
  }
});

test("all times grow with the one for writes, unless another was asked for", () => {
  expect(storeLimits({ writeTimeoutMs: 50_000, batchLockWaitMs: 90 })).toMatchObject({
    readTimeoutMs: 50_000,
    maxWaitMs: 50_000,
    statementTimeoutMs: 40_000,
    connectTimeoutMs: 20_000,
    batchLockWaitMs: 90,
  });
});
