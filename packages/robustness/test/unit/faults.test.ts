// The plan of the faults, which is promised to users who repeat a run; how many last at once; and
// the course of a run.
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { inject } from "../../src/faults/injector.js";
import { NodeFaults } from "../../src/faults/redis-nodes.js";
import { FaultLog, type PlannedFault, schedule } from "../../src/faults/schedule.js";
import { systemPlan } from "../../src/runs/profiles.js";
import { type Ran, run, type Workers } from "../../src/runs/workers.js";
import type { Environment } from "../../src/servers/system.js";

const MINUTE_MS = 60_000;
const planned = (seed: string, minutes: number): PlannedFault[] => schedule(seed, systemPlan(minutes * MINUTE_MS, 10));

describe("the schedule of the faults", () => {
  test("is a function of the seed", () => {
    expect(planned("a", 1)).toEqual(planned("a", 1));
    expect(planned("a", 1)).not.toEqual(planned("b", 1));
  });

  test("names faults in the order of their time, within the time of the run, each as long as it may last", () => {
    const faults = planned("a", 10);
    const times = faults.map(({ atMs }) => atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.max(...times)).toBeLessThan(10 * MINUTE_MS);
    const lasting = faults.filter(({ kind }) => kind !== "store failed over").map(({ lastsMs }) => lastsMs);
    expect([Math.min(...lasting) >= 20, Math.max(...lasting) > 500, Math.max(...lasting) <= 1_500]).toEqual([true, true, true]);
  });

  test("has every kind of fault in ten minutes, and the failover of the store once", () => {
    const kinds = planned("a", 10).map(({ kind }) => kind);
    expect(new Set(kinds)).toEqual(new Set([...Object.keys(systemPlan(0, 10).weights), "store failed over"]));
    expect(kinds.filter((kind) => kind === "store failed over")).toHaveLength(1);
  });

  test("T1 wipes no majority at once, and never one node twice", () => {
    const wipes = planned("a", 60).flatMap((fault) => (fault.kind === "nodes wiped" ? [fault.nodes] : []));
    expect(wipes.length).toBeGreaterThan(100);
    for (const nodes of wipes) {
      expect(nodes.length).toBeLessThanOrEqual(2);
      expect(new Set(nodes).size).toBe(nodes.length);
    }
  });
});

test("stopped clients do not keep other faults out, and are not kept out by them", async () => {
  // A link stays broken until all of the plan was dealt with, however slow the machine is.
  let dealtWith = (): void => {};
  const all = new Promise<void>((resolve) => (dealtWith = resolve));
  const proxies = Array.from({ length: 3 }, () => ({ partition: async () => {}, heal: () => all }));
  const clients = ["c0", "c1", "c2"].map((name) => ({ name, stop: () => {}, continue: () => name === "c2" && dealtWith() }));
  const fleet = { nodes: [] };
  const environment = { fleet, workers: { all: clients }, gateways: [], gatewayLinks: [], clientLinks: [{ nodes: { proxies } }] };
  const log = new FaultLog();
  const common = { atMs: 0, lastsMs: 50, nodes: [], gateway: 0, limit: 2, byMs: 0, how: "partitioned", slowMs: 0 } as const;
  const stop = (client: number): PlannedFault => ({ ...common, kind: "client stopped", clients: [client] });
  const breakLink = (node: number): PlannedFault => ({ ...common, kind: "link to nodes", clients: [0], nodes: [node] });
  await inject(
    {
      environment: environment as unknown as Environment,
      plan: [stop(0), stop(1), breakLink(0), breakLink(1), breakLink(2), stop(2)],
      log,
      nodes: new NodeFaults({ fleet: fleet as never, log, readmitted: async () => true }),
      ttlMs: 0,
      limit: 2,
      giveUp: new AbortController().signal,
    },
    new AbortController().signal,
  );
  const kinds = log.injected.map(({ kind }) => kind).sort();
  expect(kinds).toEqual([...Array(3).fill("client stopped"), ...Array(2).fill("link to nodes partitioned")]);
  expect(log.leftOut).toEqual({ "link to nodes": 1 });
});

/** Never done. */
const workers = {
  ready: async () => {},
  work: (giveUp: AbortSignal) => new Promise<boolean>((resolve) => giveUp.addEventListener("abort", () => resolve(false), { once: true })),
  finish: () => {},
  [Symbol.asyncDispose]: async () => {},
};

test("one limit covers the undoing of the faults and the recovery", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  let ran: Ran | undefined;
  const phases: string[] = [];
  const running = run(workers as unknown as Workers, {
    inject: async ({ over }) => {
      await new Promise<void>((resolve) => over.addEventListener("abort", () => resolve(), { once: true }));
      await new Promise<void>((resolve) => setTimeout(resolve, 7_000));
    },
    traffic: async () => {},
    recoveryMs: 10_000,
    onPhase: (phase) => phases.push(phase),
  }).then((result) => {
    ran = result;
  });
  await vi.advanceTimersByTimeAsync(9_999);
  expect([phases.at(-1), ran]).toEqual(["recovering", undefined]);
  await vi.advanceTimersByTimeAsync(1);
  await running;
  expect(ran?.isRecovered).toBe(false);
});
