// Injects the planned faults, each at its time, while others may last, and the faults of a store of several servers, one
// after the other. Undoes all in the end.
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy, FleetWay } from "@palisade/testkit";
import { chanceOf } from "../chance.js";
import { waited } from "../history.js";
import type { Gateway } from "../servers/gateway.js";
import type { StoreFaults } from "../servers/stores.js";
import type { ClientLinks, Environment } from "../servers/system.js";
import type { NodeFaults } from "./redis-nodes.js";
import type { FaultKind, FaultLog, LinkFault, PlannedFault } from "./schedule.js";

interface InjectorSettings {
  readonly environment: Environment;
  readonly plan: readonly PlannedFault[];
  readonly log: FaultLog;
  readonly nodes: NodeFaults;
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
  const { plan, log, limit } = settings;
  const startedAt = performance.now();
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
  await Promise.all(underWay);
  if (failures.length > 0) throw failures[0];
}

async function injectOne(settings: InjectorSettings, planned: PlannedFault): Promise<void> {
  const { environment, log, nodes, giveUp, ttlMs } = settings;
  const { store, gateways, workers } = environment;
  const { kind, lastsMs } = planned;
  switch (kind) {
    case "node killed":
    case "node paused":
    case "nodes wiped":
    case "node clock shifted":
      return nodes.inject(planned, giveUp);
    case "store crashed":
    case "store restarted":
    case "store paused":
      if (store === undefined) return log.leaveOut(kind);
      return log.alone(store, { kind, target: "store", isOfStore: true }, async () => {
        const { server } = store;
        if (kind !== "store restarted") await (kind === "store paused" ? server.pause() : server.crash());
        await sleep(kind === "store restarted" ? 0 : lastsMs);
        await (kind === "store paused" ? server.resume() : server.restart());
      });
    case "store failed over":
      return failOver(settings);
    case "gateway killed":
    case "gateway drained":
    case "gateway paused": {
      const gateway = gateways[planned.gateway];
      return gateway === undefined ? log.leaveOut(kind) : breakGateway(log, gateway, { kind, lastsMs, giveUp });
    }
    case "client stopped":
    case "client killed": {
      const client = workers.all[planned.clients[0] ?? 0];
      if (client === undefined) return log.leaveOut(kind);
      return log.alone(client, { kind, target: client.name }, async () => {
        if (kind === "client killed") return client.replace();
        client.stop();
        await sleep(ttlMs + lastsMs);
        client.continue();
      });
    }
    default:
      return breakLinks(log, linksOf(environment, planned), planned);
  }
}

/**
 * Waits for other faults of the store, because it must happen. The gateways restart with another
 * durability: the standby is gone.
 */
async function failOver({ environment: { store, gateways }, log, giveUp }: InjectorSettings): Promise<void> {
  if (store === undefined) return log.leaveOut("store failed over");
  await log.free(store);
  await log.alone(store, { kind: "store failed over", target: "store", isOfStore: true }, () => store.failOver());
  await Promise.all(
    gateways.map(async (gateway) => {
      gateway.env = { ...gateway.env, PALISADE_DURABILITY: "local" };
      await log.free(gateway);
      await breakGateway(log, gateway, { kind: "gateway killed", lastsMs: 0, giveUp });
    }),
  );
}

interface BrokenGateway {
  readonly kind: "gateway killed" | "gateway drained" | "gateway paused";
  readonly lastsMs: number;
  readonly giveUp: AbortSignal;
}

function breakGateway(log: FaultLog, gateway: Gateway, { kind, lastsMs, giveUp }: BrokenGateway): Promise<void> {
  return log.alone(gateway, { kind, target: gateway.name }, async () => {
    if (kind === "gateway paused") {
      gateway.signal("SIGSTOP");
      await sleep(lastsMs);
      gateway.signal("SIGCONT");
      return;
    }
    await gateway.end(kind === "gateway drained");
    if (kind === "gateway killed") await sleep(lastsMs);
    await gateway.restart(giveUp);
  });
}

interface Link {
  readonly target: string;
  readonly proxy: FaultProxy;
}

/** The target's name and its links; those that the run does not have are left out. */
function linksOf({ clientLinks, gatewayLinks, store }: Environment, { kind, nodes, clients, gateway }: PlannedFault): Link[] {
  const ofClients = (proxies: (links: Partial<ClientLinks>) => readonly (FaultProxy | undefined)[]) =>
    clients.flatMap((client) => proxies(clientLinks[client] ?? {}).map((proxy) => ({ target: `c${client}`, proxy })));
  const ofGateway = (proxies: readonly (FaultProxy | undefined)[]) => proxies.map((proxy) => ({ target: `gateway ${gateway + 1}`, proxy }));
  const toNodes = (way: FleetWay | undefined) => nodes.map((node) => way?.proxies[node]);
  const links: Partial<Record<FaultKind, () => { target: string; proxy: FaultProxy | undefined }[]>> = {
    "link to nodes": () => ofClients((of) => toNodes(of.nodes)),
    "link of gateway to nodes": () => ofGateway(toNodes(gatewayLinks[gateway]?.nodes)),
    "link to gateway": () => ofClients((of) => [of.gateways?.[gateway]]),
    "link of gateway to store": () => ofGateway([gatewayLinks[gateway]?.store]),
    "link of guarded table to store": () => ofClients((of) => [of.store]),
    "link to standby": () => [{ target: "standby", proxy: store?.replication }],
  };
  return (links[kind]?.() ?? []).flatMap(({ target, proxy }) => (proxy === undefined ? [] : [{ target, proxy }]));
}

const breakings: Readonly<Record<LinkFault, (link: FaultProxy, slowMs: number) => unknown>> = {
  partitioned: (link) => link.partition(),
  slow: (link, slowMs) => link.slow(slowMs),
  "replies dropped": (link) => link.dropReplies(),
  "requests dropped": (link) => link.dropRequests(),
  "replies held": (link) => link.holdReplies(),
  // They arrive when it heals: late, and perhaps from clients that are gone.
  "requests held": (link) => link.holdRequests(),
  refused: (link) => link.refuse(),
  cut: (link) => link.cut(),
};

/** Faults that meet on one link add up, and the first to heal heals all. */
async function breakLinks(log: FaultLog, links: readonly Link[], { kind, how, slowMs, lastsMs }: PlannedFault): Promise<void> {
  if (links.length === 0) return log.leaveOut(kind);
  const end = log.begin({ kind: `${kind} ${how}`, target: [...new Set(links.map(({ target }) => target))].join(", ") });
  await Promise.all(links.map(({ proxy }) => breakings[how](proxy, slowMs)));
  await sleep(how === "cut" ? 1 : lastsMs);
  await Promise.all(links.map(({ proxy }) => proxy.heal()));
  end();
}

interface StoreBreaking {
  readonly gateways: readonly Gateway[];
  readonly log: FaultLog;
  readonly seed: string;
  /** How often each kind. */
  readonly rounds: number;
}

/** So much traffic goes on between two faults. */
const REST_MS = 1_500;

/**
 * Each kind in turn, the next when all servers are in order again and the gateways say that they are ready. Until all
 * were made or the signal comes; fails if something does not recover.
 */
export async function breakStore(faults: StoreFaults, { gateways, log, seed, rounds }: StoreBreaking, over: AbortSignal): Promise<void> {
  for (let round = 1; round <= rounds; round++) {
    const chance = chanceOf(seed, `store ${round}`);
    for (const kind of chance.some(faults.kinds, faults.kinds.length)) {
      if (!(await waited(REST_MS, over))) return;
      const { target, inject } = await faults.choose(kind, chance);
      const end = log.begin({ kind, target, isOfStore: true });
      await inject();
      await Promise.all(gateways.map((gateway) => gateway.ready()));
      end();
    }
  }
  await waited(REST_MS, over);
}
