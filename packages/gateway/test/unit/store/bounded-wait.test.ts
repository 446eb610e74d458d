// How much may wait, and for how long. Needs no server.
import { describe, expect, test, vi } from "vitest";
import { BoundedWait, overloaded } from "../../../src/store/bounded-wait.js";

const limits = { maxAccepted: 3, maxAcceptedBytes: 10, maxWaitMs: 1_000 };

interface Work {
  readonly heard: unknown[];
}

const work = (): Work => ({ heard: [] });
const opened = () => new BoundedWait<Work>(limits, ({ heard }, why) => void heard.push(why));

describe("accepted work", () => {
  test("the queue is bounded in writes and bytes, counts what is in flight, and always takes one", () => {
    const wait = opened();
    const huge = work();
    expect([wait.accept(huge, 500), wait.accept(work(), 1)]).toEqual([undefined, overloaded]);
    wait.start(huge);
    expect(wait.accept(work(), 1)).toBe(overloaded);
    wait.leave(huge);
    expect([wait.accepted, wait.bytes, wait.waiting]).toEqual([0, 0, 0]);
    for (const bytes of [1, 1, 8]) expect(wait.accept(work(), bytes)).toBeUndefined();
    expect(wait.accept(work())).toBe(overloaded);
    wait.abandon();
  });

  test("G6 waits for so long in all, and what was started in time is not disturbed", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const wait = opened();
      const [overdue, started] = [work(), work()];
      for (const each of [overdue, started]) wait.accept(each);
      vi.advanceTimersByTime(600);
      wait.start(started);
      vi.advanceTimersByTime(420);
      expect([overdue.heard, started.heard]).toEqual([[overloaded], []]);
      wait.wait(started);
      vi.advanceTimersByTime(390);
      expect(started.heard).toEqual([]);
      vi.advanceTimersByTime(30);
      expect(started.heard).toEqual([overloaded]);
    } finally {
      vi.useRealTimers();
    }
  });
});
