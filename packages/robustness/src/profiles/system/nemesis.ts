// Whoever makes the faults of a run: each planned one when its time has come, while earlier ones may still last. It ends by undoing everything.
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy } from "@palisade/testkit";
import type { Ambush } from "../../faults/ambush.js";
import type { FaultLog } from "../../faults/fault-log.js";
import type { NodeStrikes } from "../../faults/redis-nodes.js";
import type { Fault, Planned } from "./schedule.js";
import type { Stage } from "./stage.js";
import { strikeLinks } from "./strike-links.js";
import { ServiceStrikes } from "./strike-services.js";

export interface NemesisSettings {
  readonly stage: Stage;
  readonly plan: readonly Planned[];
  readonly log: FaultLog;
  readonly nodes: NodeStrikes;
  /** None in the control. */
  readonly ambush: Ambush | undefined;
  /** No more waiting for anybody to readmit a node, or for a gateway to come up. */
  readonly hopeless: AbortSignal;
}

export class Nemesis {
  readonly #nodes: NodeStrikes;
  readonly #settings: NemesisSettings;
  readonly #ambush: Ambush | undefined;
  readonly #services: ServiceStrikes;
  readonly #underWay = new Set<Promise<void>>();

  constructor(settings: NemesisSettings) {
    const { log, nodes, ambush, hopeless } = settings;
    this.#settings = settings;
    this.#nodes = nodes;
    this.#ambush = ambush;
    this.#services = new ServiceStrikes(log, hopeless);
  }

  /** Follows the plan to its end, or until the signal comes; resolves when every fault is undone. Fails with the first that could not be. */
  async torment(peace: AbortSignal): Promise<void> {
    const startedAt = performance.now();
    const over = new AbortController();
    const lying = this.#ambush?.lie(AbortSignal.any([peace, over.signal])) ?? Promise.resolve();
    let failure: { readonly error: unknown } | undefined;
    for (const planned of this.#settings.plan) {
      await sleep(Math.max(0, startedAt + planned.atMs - performance.now()), undefined, { signal: peace }).catch(nameAbort);
      if (peace.aborted || failure !== undefined) break;
      const fault = this.#strike(planned)
        .catch((error: unknown) => {
          failure ??= { error };
        })
        .finally(() => this.#underWay.delete(fault));
      this.#underWay.add(fault);
    }
    over.abort();
    await Promise.all([...this.#underWay, lying]);
    await this.#nodes.settled();
    if (failure !== undefined) throw failure.error;
  }

  async #strike(planned: Planned): Promise<void> {
    const { stage } = this.#settings;
    const { lastsMs } = planned;
    switch (planned.kind) {
      case "node killed":
        return this.#nodes.kill(planned.node, lastsMs);
      case "node paused":
        return this.#nodes.pause(planned.node, lastsMs);
      case "nodes wiped":
        return this.#nodes.wipe(planned.nodes, lastsMs);
      case "node clock shifted":
        return this.#nodes.shiftClock(planned.node, planned.byMs);
      case "store crashed":
      case "store restarted":
      case "store paused":
        return this.#services.strikeStore(stage.store, planned.kind, lastsMs);
      case "store failed over":
        return this.#services.failOver(stage.store, stage.gateways);
      default:
        return this.#strikeOthers(planned);
    }
  }

  async #strikeOthers(planned: Planned): Promise<void> {
    const { stage, log } = this.#settings;
    const { lastsMs } = planned;
    if ("how" in planned) {
      const { kind, how } = planned;
      const ways = waysOf(stage, planned).filter(({ way }) => way !== undefined);
      if (ways.length === 0) return log.leaveOut(kind);
      return strikeLinks(log, { kind, how, place: placeOf(planned), ways, lastsMs });
    }
    const gateway = "gateway" in planned ? stage.gateways[planned.gateway] : undefined;
    const client = "client" in planned ? stage.cast.actors[planned.client] : undefined;
    if (planned.kind === "client stopped" && client !== undefined) return this.#services.stopClient(client, lastsMs);
    if (planned.kind === "client killed" && client !== undefined) return this.#services.killClient(client);
    if (gateway === undefined) return log.leaveOut(planned.kind);
    if (planned.kind === "gateway killed") return this.#services.killGateway(gateway, lastsMs);
    if (planned.kind === "gateway drained") return this.#services.drainGateway(gateway);
    return this.#services.pauseGateway(gateway, lastsMs);
  }
}

interface Way {
  readonly target: string;
  readonly way: FaultProxy | undefined;
}

function waysOf(stage: Stage, fault: Fault): readonly Way[] {
  switch (fault.kind) {
    case "way to nodes":
      return fault.clients.flatMap((client) =>
        fault.nodes.map((node) => ({ target: `c${client}`, way: stage.clientWays[client]?.nodes.proxies[node] })),
      );
    case "way of gateway to nodes":
      return fault.nodes.map((node) => ({
        target: `gateway ${fault.gateway + 1}`,
        way: stage.gatewayWays[fault.gateway]?.nodes.proxies[node],
      }));
    case "way to gateway":
      return fault.clients.map((client) => ({ target: `c${client}`, way: stage.clientWays[client]?.gateways[fault.gateway] }));
    case "way of gateway to store":
      return [{ target: `gateway ${fault.gateway + 1}`, way: stage.gatewayWays[fault.gateway]?.store }];
    case "way of owner to store":
      return [{ target: `c${fault.client}`, way: stage.clientWays[fault.client]?.store }];
    case "way to standby":
      return [{ target: "standby", way: stage.store.failedOver ? undefined : stage.store.replication }];
    default:
      return [];
  }
}

function placeOf({ kind }: Fault) {
  if (kind === "way to nodes" || kind === "way of gateway to nodes") return "ways to nodes";
  return kind === "way to gateway" ? "ways to gateways" : "ways to the store";
}

// The run is over.
function nameAbort(error: Error): "aborted" {
  if (error.name === "AbortError") return "aborted";
  throw error;
}
