// The plan of the faults: what is promised to users who repeat a run.
import { describe, expect, test } from "vitest";
import { type FaultKind, type PlannedFault, schedule } from "../../src/faults/schedule.js";
import { systemPlan } from "../../src/profiles/system.js";

const planned = (seed: string, durationMs: number): PlannedFault[] => schedule(seed, systemPlan(durationMs, 10));
const MINUTE_MS = 60_000;

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

  test("T1 wipes no majority at once, and never one node twice", () => {
    const wipes = planned("a", 60 * MINUTE_MS).flatMap((fault) => (fault.kind === "nodes wiped" ? [fault.nodes] : []));
    expect(wipes.length).toBeGreaterThan(100);
    for (const nodes of wipes) {
      expect(nodes.length).toBeLessThanOrEqual(2);
      expect(new Set(nodes).size).toBe(nodes.length);
    }
  });
});
