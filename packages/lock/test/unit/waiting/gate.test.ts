// How many may be inside at the same time.
import { expect, test } from "vitest";
import { Gate } from "../../../src/waiting/gate.js";

test("no more than its width are inside, and the others enter in the order in which they came", async () => {
  const gate = new Gate(2);
  const order: number[] = [];
  let inside = 0;
  let most = 0;
  const visit = async (who: number): Promise<void> => {
    if (!gate.tryEnter()) await new Promise<void>((resolve) => gate.enqueue(resolve));
    order.push(who);
    most = Math.max(most, ++inside);
    await Promise.resolve();
    inside--;
    gate.leave();
  };
  await Promise.all(Array.from({ length: 10 }, (_, who) => visit(who)));
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(most).toBe(2);
  expect(gate.tryEnter()).toBe(true);
});

test("who steps out of the line has no turn and holds nobody up", () => {
  const gate = new Gate(1);
  expect(gate.tryEnter()).toBe(true);
  const turns: string[] = [];
  const stepOut = gate.enqueue(() => turns.push("impatient"));
  gate.enqueue(() => turns.push("patient"));
  stepOut();
  gate.leave();
  expect(turns).toEqual(["patient"]);
  expect(gate.tryEnter()).toBe(false);
});
