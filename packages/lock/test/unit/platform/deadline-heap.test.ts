// One timer for many moments.
import { expect, test } from "vitest";
import { type Deadline, DeadlineHeap } from "../../../src/platform/deadline-heap.js";
import { ManualClock } from "../scripted-node.js";

class Bell implements Deadline {
  dueAt = 0;
  heapIndex = -1;
  readonly rungAt: number[] = [];
  closed = false;
  readonly #clock: ManualClock;
  readonly #then: () => void;

  constructor(clock: ManualClock, then: () => void = () => {}) {
    this.#clock = clock;
    this.#then = then;
  }

  onDue(): void {
    this.rungAt.push(this.#clock.now);
    this.#then();
  }

  async close(): Promise<void> {
    this.closed = true;
  }
}

test("a thousand alarms, set, moved and cleared at random, ring once each, at their moments, with one timer", () => {
  const clock = new ManualClock();
  const deadlines = new DeadlineHeap(clock);
  let state = 12_345;
  const random = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % below;
  };
  const bells = Array.from({ length: 1_000 }, () => new Bell(clock));
  const dueAt = new Map<Bell, number>();
  for (let i = 0; i < 5_000; i++) {
    const bell = bells[random(bells.length)] as Bell;
    if (random(4) === 0) {
      deadlines.clear(bell);
      dueAt.delete(bell);
    } else {
      const at = clock.now + 1 + random(20_000);
      deadlines.set(bell, at);
      dueAt.set(bell, at);
    }
  }
  expect(deadlines.size).toBe(dueAt.size);
  expect(clock.timers).toBe(1);
  clock.advance(30_000);
  for (const bell of bells) {
    const at = dueAt.get(bell);
    expect(bell.rungAt.length).toBe(at === undefined ? 0 : 1);
    if (at !== undefined) expect(Math.abs((bell.rungAt[0] ?? 0) - at)).toBeLessThanOrEqual(1);
  }
  expect(deadlines.size).toBe(0);
});

test("L1 after a suspension every alarm rings within a second, although the monotonic clock stood still", () => {
  const clock = new ManualClock();
  const deadlines = new DeadlineHeap(clock);
  const bell = new Bell(clock);
  deadlines.set(bell, clock.now + 60_000);
  clock.wallOffsetMs += 120_000;
  clock.advance(1_001);
  expect(bell.rungAt.length).toBe(1);
});

test("L1 a wall clock that was set back while no alarm was set does not cover a suspension after that", () => {
  const clock = new ManualClock();
  const deadlines = new DeadlineHeap(clock);
  clock.wallOffsetMs -= 3_600_000;
  const bell = new Bell(clock);
  deadlines.set(bell, clock.now + 60_000);
  clock.wallOffsetMs += 120_000;
  clock.advance(1_001);
  expect(bell.rungAt.length).toBe(1);
});

test("closing while alarms ring closes those that were due as well, when they set themselves again", async () => {
  const clock = new ManualClock();
  const deadlines = new DeadlineHeap(clock);
  const closed: string[] = [];
  const alarmCalled = (name: string, onRing: () => void): Deadline => ({
    dueAt: 0,
    heapIndex: -1,
    onDue: onRing,
    close: async () => {
      closed.push(name);
    },
  });
  const closer = alarmCalled("closer", () => void deadlines.close());
  const other = alarmCalled("other", () => deadlines.set(other, clock.now + 5));
  deadlines.set(closer, clock.now + 1);
  deadlines.set(other, clock.now + 1);
  clock.advance(1);
  expect(closed).toEqual(["other"]);
  expect(clock.timers).toBe(0);
});
