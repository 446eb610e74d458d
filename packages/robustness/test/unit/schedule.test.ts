// The plan of the faults: what is promised to users who repeat a run.
import { describe, expect, test } from "vitest";
import { type FaultKind, type PlannedFault, schedule } from "../../src/faults/schedule.js";
import { lockProfile, readLockArguments } from "../../src/profiles/lock.js";
import { systemPlan } from "../../src/profiles/system.js";

const planned = (seed: string, durationMs: number): PlannedFault[] => schedule(seed, systemPlan(durationMs, 10));
const MINUTE_MS = 60_000;

/** The shortest, the middle and the longest time of the faults of one kind. */
function spread(
  faults: readonly PlannedFault[],
  kind: FaultKind,
): { readonly least: number; readonly middle: number; readonly most: number } {
  const times = faults.flatMap((fault) => (fault.kind === kind ? [fault.lastsMs] : [])).sort((a, b) => a - b);
  return { least: times[0] ?? Number.NaN, middle: times[times.length >> 1] ?? Number.NaN, most: times.at(-1) ?? Number.NaN };
}

describe("the schedule of the faults", () => {
  test("is a function of the seed", () => {
    expect(planned("a", MINUTE_MS)).toEqual(planned("a", MINUTE_MS));
    expect(planned("a", MINUTE_MS)).not.toEqual(planned("b", MINUTE_MS));
  });

  test("names faults in the order of their time, within the time of the run", () => {
    const times = planned("a", MINUTE_MS).map(({ atMs }) => atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.max(...times)).toBeLessThan(MINUTE_MS);
  });

  test("has every kind of fault in ten minutes, and the failover of the store once", () => {
    const kinds = planned("a", 10 * MINUTE_MS).map(({ kind }) => kind);
    const all: FaultKind[] = [
      "node killed",
      "node paused",
      "nodes wiped",
      "node clock shifted",
      "link to nodes",
      "link of gateway to nodes",
      "link to gateway",
      "link of gateway to store",
      "link of guarded table to store",
      "link to standby",
      "gateway killed",
      "gateway paused",
      "gateway drained",
      "store crashed",
      "store restarted",
      "store paused",
      "client stopped",
      "client killed",
    ];
    for (const kind of all) expect(kinds).toContain(kind);
    expect(kinds.filter((kind) => kind === "store failed over")).toHaveLength(1);
  });

  test("of the lock lasts as long as suits the kind of fault, in equal measure up to its longest", () => {
    const { plan } = lockProfile(readLockArguments({ text: { seed: "a" }, has: () => false }));
    const faults = schedule("a", { ...plan, durationMs: 60 * MINUTE_MS });
    for (const [kind, least, most] of [
      ["node killed", 10, 300],
      ["nodes wiped", 10, 300],
      ["node paused", 10, 900],
      ["link to nodes", 10, 500],
      ["client stopped", 0, 300],
    ] as const) {
      const seen = spread(faults, kind);
      const near = (most - least) / 20;
      expect(seen.least, kind).toBeGreaterThanOrEqual(least);
      expect(seen.least, kind).toBeLessThan(least + near);
      expect(Math.abs(seen.middle - (least + most) / 2), kind).toBeLessThan(2 * near);
      expect(seen.most, kind).toBeGreaterThan(most - near);
      expect(seen.most, kind).toBeLessThanOrEqual(most);
    }
  });

  test("T1 wipes no majority at once, and never one node twice", () => {
    const wipes = planned("a", 60 * MINUTE_MS).flatMap((fault) => (fault.kind === "nodes wiped" ? [fault.nodes] : []));
    expect(wipes.length).toBeGreaterThan(100);
    for (const nodes of wipes) {
      expect(nodes.length).toBeLessThanOrEqual(2);
      expect(new Set(nodes).size).toBe(nodes.length);
    }
  });
});
