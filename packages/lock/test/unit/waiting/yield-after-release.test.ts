// A process that released what others wait for lets them go first.
import { expect, test } from "vitest";
import type { ReleaseBallot } from "../../../src/protocol/ballot.js";
import { YIELD_MS } from "../../../src/waiting/retry-delay.js";
import { YieldAfterRelease } from "../../../src/waiting/yield-after-release.js";
import { ManualClock } from "../manual-clock.js";

const released = (listeners: number): ReleaseBallot => ({ kind: "released", node: "n1", listeners });

test("a release that others heard of is followed by a pause, and only for its resources", () => {
  const clock = new ManualClock();
  const yieldAfterRelease = new YieldAfterRelease(clock, () => false);
  yieldAfterRelease.released(["a"], [released(0), undefined, released(2)]);
  expect(yieldAfterRelease.dueMs(["a"])).toBe(YIELD_MS);
  expect(yieldAfterRelease.dueMs(["b", "a"])).toBe(YIELD_MS);
  expect(yieldAfterRelease.dueMs(["b"])).toBe(0);
  clock.advance(YIELD_MS);
  expect(yieldAfterRelease.dueMs(["a"])).toBe(0);
});

test("no pause follows when no other process waits", () => {
  const yieldAfterRelease = new YieldAfterRelease(new ManualClock(), (resource) => resource === "ours");
  yieldAfterRelease.released(["a"], [released(0), { kind: "absent", node: "n2" }]);
  yieldAfterRelease.released(["ours"], [released(1)]);
  expect(yieldAfterRelease.dueMs(["a", "ours"])).toBe(0);
  yieldAfterRelease.released(["ours"], [released(2)]);
  expect(yieldAfterRelease.dueMs(["ours"])).toBe(YIELD_MS);
});
