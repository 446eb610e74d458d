// How many faults last at once.
import { expect, test } from "vitest";
import { FaultLog } from "../../src/faults/fault-log.js";
import { inject } from "../../src/faults/injector.js";
import { NodeFaults } from "../../src/faults/redis-nodes.js";
import type { PlannedFault } from "../../src/faults/schedule.js";
import type { Environment } from "../../src/servers/environment.js";

test("stopped clients do not keep other faults out, and are not kept out by them", async () => {
  const proxies = Array.from({ length: 3 }, () => ({ partition: async () => {}, heal: async () => {} }));
  const clients = ["c0", "c1", "c2"].map((name) => ({ name, stop: () => {}, continue: () => {} }));
  const fleet = { nodes: [] };
  const environment = { fleet, workers: { all: clients }, gateways: [], gatewayLinks: [], clientLinks: [{ nodes: { proxies } }] };
  const log = new FaultLog();
  const common = { atMs: 0, lastsMs: 50 };
  const stop = (client: number): PlannedFault => ({ kind: "client stopped", client, ...common });
  const breakLink = (node: number): PlannedFault => ({
    kind: "link to nodes",
    clients: [0],
    nodes: [node],
    how: "partitioned",
    slowMs: 0,
    ...common,
  });
  await inject(
    {
      environment: environment as unknown as Environment,
      plan: [stop(0), stop(1), breakLink(0), breakLink(1), breakLink(2), stop(2)],
      log,
      nodes: new NodeFaults({ fleet: fleet as never, log, killKeepsMemory: true, readmitted: async () => true }),
      ambush: undefined,
      ttlMs: 0,
      limit: 2,
      giveUp: new AbortController().signal,
    },
    new AbortController().signal,
  );
  expect(Object.fromEntries(log.counts())).toEqual({ "client stopped": 3, "link to nodes partitioned": 2 });
  expect(log.leftOut).toEqual({ "link to nodes": 1 });
});
