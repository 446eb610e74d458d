// A server's wall clock can jump, forwards and backwards, while its neighbour's and our own do not.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RedisNode } from "../../src/redis/fleet.js";
import { RedisFleet } from "../../src/redis/fleet.js";

let fleet: RedisFleet;

beforeAll(async () => {
  fleet = await RedisFleet.start({ nodes: 2, provider: "local" });
});

afterAll(async () => {
  await fleet.stop();
});

/** The server was asked between two looks at our clock, so it is ahead by something in between. */
async function aheadMs(node: RedisNode): Promise<{ least: number; most: number }> {
  const before = Date.now();
  const [seconds, microseconds] = (await node.cli("TIME")) as [string, string];
  const shown = Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
  return { least: shown - Date.now() - 1, most: shown - before + 1 };
}

async function expectAhead(node: RedisNode, expectedMs: number): Promise<void> {
  const { least, most } = await aheadMs(node);
  expect(least).toBeLessThanOrEqual(expectedMs);
  expect(most).toBeGreaterThanOrEqual(expectedMs);
}

test("jumps add up, move one server only, and outlive its restart", async () => {
  const [jumping, steady] = fleet.nodes as [RedisNode, RedisNode];
  await jumping.shiftClock(3_600_000);
  await jumping.shiftClock(-7_200_500);
  await expectAhead(jumping, -3_600_500);
  await expectAhead(steady, 0);
  await jumping.restart();
  await expectAhead(jumping, -3_600_500);
});

test("a jump is as long as asked for, wherever in a second it begins", async () => {
  const node = fleet.nodes[1] as RedisNode;
  for (const [count, byMs] of [-137, 137].flatMap((step) => Array.from({ length: 15 }, (_, index) => [index + 1, step] as const))) {
    await node.shiftClock(byMs);
    await expectAhead(node, byMs < 0 ? byMs * count : -137 * 15 + byMs * count);
  }
});

test("a jump forwards ends the lives of keys at once, a jump backwards lengthens them, and uptime does not care", async () => {
  const node = fleet.nodes[1] as RedisNode;
  await node.cli("SET", "k", "v", "PX", 60_000);
  await node.shiftClock(-30_000);
  expect(Number(await node.cli("PTTL", "k"))).toBeGreaterThan(80_000);
  await node.shiftClock(100_000);
  expect(await node.cli("GET", "k")).toBeNull();
});

test("a clock may be moved while its server is paused or killed", async () => {
  const node = fleet.nodes[0] as RedisNode;
  await node.pause();
  await node.shiftClock(5_000);
  await node.resume();
  await expectAhead(node, -3_595_500);
  await node.kill();
  await node.shiftClock(5_000);
  await node.restart();
  await expectAhead(node, -3_590_500);
});

test("a fleet with real clocks says that they cannot be moved, and how they could", async () => {
  await using real = await RedisFleet.start({ nodes: 1, clock: "real", provider: "local" });
  await expect(real.nodes[0]?.shiftClock(1)).rejects.toThrow(/the clock of n1 is real: start the fleet with clock "shiftable"/);
});
