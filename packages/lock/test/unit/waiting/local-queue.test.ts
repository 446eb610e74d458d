// First in, first out, inside one process.
import { expect, test } from "vitest";
import type { Lost } from "../../../src/protocol/outcome.js";
import { LocalQueue } from "../../../src/waiting/local-queue.js";

test("callers have their turns in the order in which they came", () => {
  const queue = new LocalQueue(1);
  const turns: number[] = [];
  expect(queue.tryEnter("r")).toBe(true);
  for (let i = 1; i <= 3; i++) {
    expect(queue.tryEnter("r")).toBe(false);
    queue.enqueue("r", () => turns.push(i));
  }
  for (let i = 0; i < 3; i++) queue.leave("r");
  expect(turns).toEqual([1, 2, 3]);
  queue.leave("r");
  expect(queue.isOccupied("r")).toBe(false);
});

test("a caller that steps out of the queue has no turn and delays no other", () => {
  const queue = new LocalQueue(1);
  const turns: string[] = [];
  queue.tryEnter("r");
  const stepOut = queue.enqueue("r", () => turns.push("first"));
  queue.enqueue("r", () => turns.push("second"));
  stepOut();
  stepOut();
  queue.leave("r");
  expect(turns).toEqual(["second"]);
  expect(queue.tryEnter("r")).toBe(false);
});

test("resources do not delay each other, and nothing is kept of those that no caller wants", () => {
  const queue = new LocalQueue(1);
  const lost = { kind: "lost", reason: "held" } as Lost;
  expect(queue.tryEnter("a") && queue.tryEnter("b")).toBe(true);
  queue.noteLoss("a", lost);
  expect(queue.lastLoss("a")).toBe(lost);
  queue.leave("a");
  expect(queue.tryEnter("a")).toBe(true);
  expect(queue.lastLoss("a")).toBeUndefined();
});

test("no more than its width are inside, and the others enter in the order in which they came", async () => {
  const queue = new LocalQueue(2);
  const order: number[] = [];
  let inside = 0;
  let most = 0;
  const pass = async (caller: number): Promise<void> => {
    if (!queue.tryEnter("")) await new Promise<void>((resolve) => queue.enqueue("", resolve));
    order.push(caller);
    most = Math.max(most, ++inside);
    await Promise.resolve();
    inside--;
    queue.leave("");
  };
  await Promise.all(Array.from({ length: 10 }, (_, caller) => pass(caller)));
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(most).toBe(2);
  expect(queue.isOccupied("")).toBe(false);
});
