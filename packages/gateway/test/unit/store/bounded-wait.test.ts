// How much may wait, and for how long. Needs no server.
import { describe, expect, test, vi } from "vitest";
import { BoundedWait, closing, overloaded, type Waiter, waiterOf } from "../../../src/store/bounded-wait.js";

const limits = { maxAccepted: 3, maxAcceptedBytes: 10, maxWaitMs: 1_000 };

function waiter(bytes = 1): Waiter & { readonly heard: unknown[] } {
  const heard: unknown[] = [];
  return Object.assign(waiterOf(bytes), { heard, giveUp: (why: unknown) => void heard.push(why) });
}

describe("accepted work", () => {
  test("the queue is bounded in writes and bytes, counts what is in flight, and always takes one", () => {
    const wait = new BoundedWait(limits);
    const huge = waiter(500);
    expect([wait.accept(huge), wait.accept(waiter())]).toEqual([undefined, overloaded]);
    wait.start(huge);
    expect(wait.accept(waiter())).toBe(overloaded);
    wait.leave(huge);
    expect([wait.accepted, wait.bytes, wait.waiting]).toEqual([0, 0, 0]);
    for (const bytes of [1, 1, 8]) expect(wait.accept(waiter(bytes))).toBeUndefined();
    expect(wait.accept(waiter(0))).toBe(overloaded);
    wait.abandon();
  });

  test("G6 waits for so long in all, and what was started in time is not disturbed", () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    try {
      const wait = new BoundedWait(limits);
      const [overdue, started] = [waiter(), waiter()];
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

  test("is refused while the gateway closes, which waits for what it accepted", async () => {
    const wait = new BoundedWait(limits);
    const [started, waiting] = [waiter(), waiter()];
    for (const each of [started, waiting]) wait.accept(each);
    wait.start(started);
    const drained = wait.drain();
    expect(wait.accept(waiter())).toBe(closing);
    wait.abandon();
    expect([started.heard, waiting.heard]).toEqual([[], [closing]]);
    for (const each of [started, waiting]) wait.leave(each);
    await drained;
  });
});
