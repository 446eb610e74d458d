// Who has just released to others lets them go first.
import { expect, test } from "vitest";
import type { ReleaseBallot } from "../../../src/protocol/ballot.js";
import { COURTESY_MS } from "../../../src/quorum/pacing.js";
import { Courtesy } from "../../../src/waiting/yield-after-release.js";
import { ManualClock } from "../manual-clock.js";

const released = (listeners: number): ReleaseBallot => ({ kind: "released", node: "n1", listeners });

test("a release that others heard of is followed by a pause, and only for its resources", () => {
  const clock = new ManualClock();
  const courtesy = new Courtesy(clock, () => false);
  courtesy.released(["a"], [released(0), undefined, released(2)]);
  expect(courtesy.dueMs(["a"])).toBe(COURTESY_MS);
  expect(courtesy.dueMs(["b", "a"])).toBe(COURTESY_MS);
  expect(courtesy.dueMs(["b"])).toBe(0);
  clock.advance(COURTESY_MS);
  expect(courtesy.dueMs(["a"])).toBe(0);
});

test("nobody is left the lock when nobody else waits", () => {
  const courtesy = new Courtesy(new ManualClock(), (resource) => resource === "ours");
  courtesy.released(["a"], [released(0), { kind: "absent", node: "n2" }]);
  courtesy.released(["ours"], [released(1)]);
  expect(courtesy.dueMs(["a", "ours"])).toBe(0);
  courtesy.released(["ours"], [released(2)]);
  expect(courtesy.dueMs(["ours"])).toBe(COURTESY_MS);
});
