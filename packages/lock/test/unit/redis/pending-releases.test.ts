// Releases that are owed: kept for as long as a key can live, never more than 10 000.
import { describe, expect, test } from "vitest";
import { ReleaseDebts } from "../../../src/redis/pending-releases.js";

const debt = (owner: string) => ({ resources: ["a"], owner, turn: 1 });

describe("release debts", () => {
  test("are handed out once, in order, as long as the key could live", () => {
    const debts = new ReleaseDebts(100, () => expect.unreachable());
    debts.add(debt("first"), 0);
    debts.add(debt("second"), 50);
    debts.add(debt("third"), 60);
    expect(debts.take(100).map(({ owner }) => owner)).toEqual(["second", "third"]);
    expect(debts.take(100)).toEqual([]);
    expect(debts.size).toBe(0);
  });

  test("beyond 10 000 are given up, the newest first, and it is said how many", () => {
    const dropped: number[] = [];
    const debts = new ReleaseDebts(100, (count) => dropped.push(count));
    for (let index = 0; index < 10_003; index++) debts.add(debt(String(index)), 0);
    expect(debts.size).toBe(10_000);
    expect(debts.take(50).at(-1)?.owner).toBe("9999");
    expect(dropped).toEqual([3]);
    expect(debts.take(50)).toEqual([]);
    expect(dropped).toEqual([3]);
  });

  test("make room for new ones as their keys run out", () => {
    const debts = new ReleaseDebts(100, () => expect.unreachable());
    for (let index = 0; index < 10_000; index++) debts.add(debt(String(index)), index < 4_000 ? 0 : 90);
    debts.add(debt("late"), 100);
    expect(debts.size).toBe(6_001);
  });
});
