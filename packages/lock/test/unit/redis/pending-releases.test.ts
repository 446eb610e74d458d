// Releases that are owed: kept until the node is back, never more than 10 000.
import { describe, expect, test } from "vitest";
import { PendingReleases } from "../../../src/redis/pending-releases.js";

const debt = (owner: string) => ({ resources: ["a"], owner, notifyFrom: 1 });

describe("pending releases", () => {
  test("L2 are handed out once, in order, however long the node was away", () => {
    const pendingReleases = new PendingReleases(100, () => expect.unreachable());
    pendingReleases.add(debt("first"), 0);
    pendingReleases.add(debt("second"), 50);
    pendingReleases.add(debt("third"), 5_000);
    expect(pendingReleases.take(2).map(({ owner }) => owner)).toEqual(["first", "second"]);
    expect(pendingReleases.take().map(({ owner }) => owner)).toEqual(["third"]);
    expect(pendingReleases.take()).toEqual([]);
    expect(pendingReleases.size).toBe(0);
  });

  test("beyond 10 000 are given up, the newest first, and it is said how many", () => {
    const dropped: number[] = [];
    const pendingReleases = new PendingReleases(100, (count) => dropped.push(count));
    for (let index = 0; index < 10_003; index++) pendingReleases.add(debt(String(index)), 0);
    expect(pendingReleases.size).toBe(10_000);
    expect(pendingReleases.take().at(-1)?.owner).toBe("9999");
    expect(dropped).toEqual([3]);
    expect(pendingReleases.take()).toEqual([]);
    expect(dropped).toEqual([3]);
  });

  test("make room for new ones once their keys should have run out", () => {
    const pendingReleases = new PendingReleases(100, () => expect.unreachable());
    for (let index = 0; index < 10_000; index++) pendingReleases.add(debt(String(index)), index < 4_000 ? 0 : 90);
    pendingReleases.add(debt("late"), 100);
    expect(pendingReleases.size).toBe(6_001);
  });
});
