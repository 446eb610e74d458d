// Ports given out by processes on one machine never meet, whatever the dice say.
import { afterEach, expect, test, vi } from "vitest";

type Ports = typeof import("../../src/process/port-block.js");

/** As another process would have it: claims and free ports of its own. */
async function anotherTaker(): Promise<Ports> {
  vi.resetModules();
  return import("../../src/process/port-block.js");
}

async function take(ports: Ports, count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, () => ports.takePort()));
}

afterEach(() => {
  vi.restoreAllMocks();
});

test("takers that begin at the same block get different ports, also when one block is not enough", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0.5);
  const takers = [await anotherTaker(), await anotherTaker(), await anotherTaker()];
  const taken = await Promise.all(takers.map((taker) => take(taker, 60)));
  expect(new Set(taken.flat()).size).toBe(180);
});

test("a port that is given back is given out again, after all that were never used", async () => {
  const ports = await anotherTaker();
  const [first = 0] = await take(ports, 1);
  ports.returnPort(first);
  const next = await take(ports, 49);
  expect(next.indexOf(first)).toBe(48);
});
