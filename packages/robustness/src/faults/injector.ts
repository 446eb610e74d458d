// Injects the planned faults, each at its time, while others may last. Undoes all in the end.
import { waited } from "../history/records.js";
import type { Environment } from "../servers/environment.js";
import type { Ambush } from "./ambush.js";
import type { FaultLog } from "./fault-log.js";
import { breakLinks, type Link } from "./network.js";
import { breakPostgres, failOver } from "./postgres.js";
import { killClient, pauseGateway, restartGateway, stopClient } from "./processes.js";
import type { NodeFaults } from "./redis-nodes.js";
import type { BrokenLinks, PlannedFault } from "./schedule.js";

interface InjectorSettings {
  readonly environment: Environment;
  readonly plan: readonly PlannedFault[];
  readonly log: FaultLog;
  readonly nodes: NodeFaults;
  /** None in a control. */
  readonly ambush: Ambush | undefined;
  /** A stopped client outlives its lease by the time that is planned. */
  readonly ttlMs: number;
  /**
   * How many faults may last at once. Stopped clients are not counted: a stop lasts longer than
   * other faults, and would keep them out.
   */
  readonly limit: number;
  /** No more waiting for the readmission of a node, or for a gateway to come up. */
  readonly giveUp: AbortSignal;
}

/** Until the plan is done or the signal comes; fails with the first fault that cannot be undone. */
export async function inject(settings: InjectorSettings, over: AbortSignal): Promise<void> {
  const { plan, ambush, nodes, log, limit } = settings;
  const startedAt = performance.now();
  const planDone = new AbortController();
  const lying = ambush?.lie(AbortSignal.any([over, planDone.signal])) ?? Promise.resolve();
  const underWay = new Set<Promise<void>>();
  let countedUnderWay = 0;
  const failures: unknown[] = [];
  for (const planned of plan) {
    if (!(await waited(Math.max(0, startedAt + planned.atMs - performance.now()), over)) || failures.length > 0) break;
    const counts = planned.kind === "client stopped" ? 0 : 1;
    if (counts > 0 && countedUnderWay >= limit) {
      log.leaveOut(planned.kind);
      continue;
    }
    countedUnderWay += counts;
    const fault = injectOne(settings, planned)
      .catch((error: unknown) => void failures.push(error))
      .finally(() => {
        countedUnderWay -= counts;
        underWay.delete(fault);
      });
    underWay.add(fault);
  }
  planDone.abort();
  await Promise.all([...underWay, lying]);
  await nodes.settled();
  if (failures.length > 0) throw failures[0];
}

async function injectOne(settings: InjectorSettings, planned: PlannedFault): Promise<void> {
  const { environment, log, nodes, giveUp } = settings;
  const { store, gateways } = environment;
  const { lastsMs } = planned;
  switch (planned.kind) {
    case "node killed":
      return nodes.kill(planned.node, lastsMs, planned.limit);
    case "node paused":
      return nodes.pause(planned.node, lastsMs, planned.limit);
    case "nodes wiped":
      return nodes.wipe(planned.nodes, lastsMs, planned.limit);
    case "node clock shifted":
      return nodes.shiftClock(planned.node, planned.byMs);
    case "store crashed":
    case "store restarted":
    case "store paused":
      return store === undefined ? log.leaveOut(planned.kind) : breakPostgres(log, store, { kind: planned.kind, lastsMs });
    case "store failed over":
      return store === undefined ? log.leaveOut(planned.kind) : failOver(log, { store, gateways }, giveUp);
    case "gateway killed":
    case "gateway drained":
    case "gateway paused": {
      const gateway = gateways[planned.gateway];
      if (gateway === undefined) return log.leaveOut(planned.kind);
      if (planned.kind === "gateway paused") return pauseGateway(log, gateway, lastsMs);
      return restartGateway(log, gateway, { kind: planned.kind, lastsMs, giveUp });
    }
    case "client stopped":
    case "client killed": {
      const client = environment.workers.all[planned.client];
      if (client === undefined) return log.leaveOut(planned.kind);
      return planned.kind === "client killed" ? killClient(log, client) : stopClient(log, client, settings.ttlMs + lastsMs);
    }
    default: {
      const links = linksOf(environment, planned);
      return links.length === 0 ? log.leaveOut(planned.kind) : breakLinks(log, links, { ...planned, place: placeOf(planned) });
    }
  }
}

function linksOf({ clientLinks, gatewayLinks, store }: Environment, fault: BrokenLinks): readonly Link[] {
  const gateway = "gateway" in fault ? `gateway ${fault.gateway + 1}` : "";
  const links = ((): readonly { target: string; proxy: Link["proxy"] | undefined }[] => {
    switch (fault.kind) {
      case "link to nodes":
        return fault.clients.flatMap((client) =>
          fault.nodes.map((node) => ({ target: `c${client}`, proxy: clientLinks[client]?.nodes.proxies[node] })),
        );
      case "link of gateway to nodes":
        return fault.nodes.map((node) => ({ target: gateway, proxy: gatewayLinks[fault.gateway]?.nodes.proxies[node] }));
      case "link to gateway":
        return fault.clients.map((client) => ({ target: `c${client}`, proxy: clientLinks[client]?.gateways[fault.gateway] }));
      case "link of gateway to store":
        return [{ target: gateway, proxy: gatewayLinks[fault.gateway]?.store }];
      case "link of guarded table to store":
        return [{ target: `c${fault.client}`, proxy: clientLinks[fault.client]?.store }];
      case "link to standby":
        return [{ target: "standby", proxy: store?.replication }];
    }
  })();
  return links.flatMap(({ target, proxy }) => (proxy === undefined ? [] : [{ target, proxy }]));
}

function placeOf({ kind }: BrokenLinks) {
  if (kind === "link to nodes" || kind === "link of gateway to nodes") return "links to nodes";
  return kind === "link to gateway" ? "links to gateways" : "links to the store";
}
