// A server's wall clock can jump, forwards and backwards, while its neighbour's and our own do not.
import { afterAll, beforeAll, expect, test } from "vitest";
import { RedisFleet } from "../../src/redis/redis-fleet.js";
import type { RedisNode } from "../../src/redis/redis-node.js";

let fleet: RedisFleet;

beforeAll(async () => {
  fleet = await RedisFleet.start({ nodes: 2 });
});

afterAll(async () => {
  await fleet.stop();
});

async function aheadMs(node: RedisNode): Promise<number> {
  const [seconds, microseconds] = (await node.cli("TIME")) as [string, string];
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000 - Date.now();
}

test("jumps add up, move one server only, and outlive its restart", async () => {
  const [jumping, steady] = fleet.nodes as [RedisNode, RedisNode];
  await jumping.shiftClock(3_600_000);
  await jumping.shiftClock(-7_200_500);
  expect(Math.abs((await aheadMs(jumping)) + 3_600_500)).toBeLessThan(1_000);
  expect(Math.abs(await aheadMs(steady))).toBeLessThan(1_000);
  await jumping.restart();
  expect(Math.abs((await aheadMs(jumping)) + 3_600_500)).toBeLessThan(1_000);
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
  const before = await aheadMs(node);
  await node.pause();
  await node.shiftClock(5_000);
  await node.resume();
  expect(Math.abs((await aheadMs(node)) - before - 5_000)).toBeLessThan(1_000);
  await node.kill();
  await node.shiftClock(5_000);
  await node.restart();
  expect(Math.abs((await aheadMs(node)) - before - 10_000)).toBeLessThan(1_000);
});

test("a fleet with real clocks says that they cannot be moved, and how they could", async () => {
  await using real = await RedisFleet.start({ nodes: 1, clock: "real" });
  await expect(real.nodes[0]?.shiftClock(1)).rejects.toThrow(/the clock of n1 is real: start the fleet with clock "shiftable"/);
});
