// First in, first out, inside one process.
import { expect, test } from "vitest";
import { LocalQueue } from "../../../src/waiting/local-queue.js";

test("callers have their turns in the order in which they came", () => {
  const localQueue = new LocalQueue<string>();
  const turns: number[] = [];
  expect(localQueue.tryEnter("r")).toBe(true);
  for (let i = 1; i <= 3; i++) {
    expect(localQueue.tryEnter("r")).toBe(false);
    localQueue.enqueue("r", () => turns.push(i));
  }
  for (let i = 0; i < 3; i++) localQueue.leave("r");
  expect(turns).toEqual([1, 2, 3]);
  localQueue.leave("r");
  expect(localQueue.occupied("r")).toBe(false);
});

test("who steps out of the queue has no turn and holds nobody up", () => {
  const localQueue = new LocalQueue<string>();
  const turns: string[] = [];
  localQueue.tryEnter("r");
  const stepOut = localQueue.enqueue("r", () => turns.push("first"));
  localQueue.enqueue("r", () => turns.push("second"));
  stepOut();
  stepOut();
  localQueue.leave("r");
  expect(turns).toEqual(["second"]);
});

test("resources do not hold each other up, and nothing is kept of those that nobody wants", () => {
  const localQueue = new LocalQueue<string>();
  expect(localQueue.tryEnter("a") && localQueue.tryEnter("b")).toBe(true);
  localQueue.tell("a", "held");
  expect(localQueue.lastWord("a")).toBe("held");
  localQueue.leave("a");
  expect(localQueue.tryEnter("a")).toBe(true);
  expect(localQueue.lastWord("a")).toBeUndefined();
});
