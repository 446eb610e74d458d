// The plan of a run: what is promised about it to whoever repeats a run.
import { describe, expect, test } from "vitest";
import { type FaultKind, schedule } from "../../../src/profiles/system/schedule.js";

const surroundings = { nodes: 5, gateways: 2, clients: 10 };
const minute = 60_000;

describe("the schedule of the faults", () => {
  test("is a function of the seed", () => {
    expect(schedule("a", minute, surroundings)).toEqual(schedule("a", minute, surroundings));
    expect(schedule("a", minute, surroundings)).not.toEqual(schedule("b", minute, surroundings));
  });

  test("names faults in the order of their time, within the time of the run", () => {
    const times = schedule("a", minute, surroundings).map(({ atMs }) => atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.max(...times)).toBeLessThan(minute);
  });

  test("has every kind of fault in ten minutes, and the failover of the store once", () => {
    const kinds = schedule("a", 10 * minute, surroundings).map(({ kind }) => kind);
    const all: FaultKind[] = [
      "node killed",
      "node paused",
      "nodes wiped",
      "node clock shifted",
      "way to nodes",
      "way of gateway to nodes",
      "way to gateway",
      "way of gateway to store",
      "way of owner to store",
      "way to standby",
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
    const wipes = schedule("a", 60 * minute, surroundings).flatMap((fault) => (fault.kind === "nodes wiped" ? [fault.nodes] : []));
    expect(wipes.length).toBeGreaterThan(100);
    for (const nodes of wipes) {
      expect(nodes.length).toBeLessThanOrEqual(2);
      expect(new Set(nodes).size).toBe(nodes.length);
    }
  });
});
