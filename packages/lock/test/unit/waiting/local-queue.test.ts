// First in, first out, inside one process.
import { expect, test } from "vitest";
import { Turnstile } from "../../../src/waiting/local-queue.js";

test("callers have their turns in the order in which they came", () => {
  const turnstile = new Turnstile<string>();
  const turns: number[] = [];
  expect(turnstile.tryEnter("r")).toBe(true);
  for (let i = 1; i <= 3; i++) {
    expect(turnstile.tryEnter("r")).toBe(false);
    turnstile.enqueue("r", () => turns.push(i));
  }
  for (let i = 0; i < 3; i++) turnstile.leave("r");
  expect(turns).toEqual([1, 2, 3]);
  turnstile.leave("r");
  expect(turnstile.occupied("r")).toBe(false);
});

test("who steps out of the queue has no turn and holds nobody up", () => {
  const turnstile = new Turnstile<string>();
  const turns: string[] = [];
  turnstile.tryEnter("r");
  const stepOut = turnstile.enqueue("r", () => turns.push("first"));
  turnstile.enqueue("r", () => turns.push("second"));
  stepOut();
  stepOut();
  turnstile.leave("r");
  expect(turns).toEqual(["second"]);
});

test("resources do not hold each other up, and nothing is kept of those that nobody wants", () => {
  const turnstile = new Turnstile<string>();
  expect(turnstile.tryEnter("a") && turnstile.tryEnter("b")).toBe(true);
  turnstile.tell("a", "held");
  expect(turnstile.lastWord("a")).toBe("held");
  turnstile.leave("a");
  expect(turnstile.tryEnter("a")).toBe(true);
  expect(turnstile.lastWord("a")).toBeUndefined();
});
