// Percentiles out of a fixed number of buckets: near enough, and mergeable.
import { expect, test } from "vitest";
import { Latency, quantileMs } from "../../src/traffic/latency.js";

test("a percentile is at most a tenth above the true one", () => {
  const latency = new Latency();
  for (let ms = 1; ms <= 1_000; ms++) latency.add(ms);
  const counts = latency.take();
  for (const [part, exact] of [[0.5, 500] as const, [0.99, 990] as const]) {
    const ms = quantileMs(counts, part) ?? 0;
    expect(ms).toBeGreaterThanOrEqual(exact);
    expect(ms).toBeLessThan(exact * 1.1);
  }
});

test("what was taken is forgotten, and counts of several processes add up", () => {
  const [one, other] = [new Latency(), new Latency()];
  one.add(1);
  other.add(100);
  const sum = new Latency();
  sum.addAll(one.take());
  sum.addAll(other.take());
  expect(one.take()).toEqual([]);
  const counts = sum.take();
  expect(counts.map(([, count]) => count)).toEqual([1, 1]);
  expect(quantileMs(counts, 0.99)).toBeGreaterThan(99);
});

test("nothing measured has no percentile, and the shortest and the longest time have a bucket", () => {
  expect(quantileMs([], 0.99)).toBeUndefined();
  const latency = new Latency();
  for (const ms of [0, 1e-9, 1e12]) latency.add(ms);
  expect(latency.take().map(([, count]) => count)).toEqual([2, 1]);
});
