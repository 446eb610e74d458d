// Which faults of the servers a run of the lock alone makes, drawn as it goes on; and samples of what the nodes have counted meanwhile.
import type { RedisFleet } from "@palisade/testkit";
import type { NodeStrikes } from "../../faults/redis-nodes.js";
import type { Chance } from "../../harness/chance.js";
import type { CounterSample } from "./history.js";
import { sample } from "./memory.js";

export interface NodeFaultSettings {
  readonly fleet: RedisFleet;
  readonly chance: Chance;
  readonly strikes: NodeStrikes;
}

/** As many as a quorum can spare, and now and then one more. */
const AT_ONCE = 2;
const ONE_MORE = 0.15;

export class NodeFaults {
  readonly samples: CounterSample[] = [];
  readonly #settings: NodeFaultSettings;

  constructor(settings: NodeFaultSettings) {
    this.#settings = settings;
  }

  /** Makes one fault and undoes it; does nothing if the nodes have enough to bear. */
  async strike(): Promise<void> {
    const { chance, fleet, strikes } = this.#settings;
    const fault = chance.one(["kill", "wipe", "wipe", "pause"] as const);
    const nodes = chance.some([...fleet.nodes.keys()], fault === "wipe" && chance.happens(0.4) ? 2 : 1);
    const limit = AT_ONCE + (chance.happens(ONE_MORE) ? 1 : 0);
    const lastsMs = chance.between(10, fault === "pause" ? 900 : 300);
    if (fault === "wipe") return strikes.wipe(nodes, lastsMs, limit);
    return strikes[fault](nodes[0] ?? 0, lastsMs, limit);
  }

  /** Looks at the counters of all nodes that have no trouble now. */
  async look(): Promise<void> {
    const { fleet, strikes } = this.#settings;
    const healthy = fleet.nodes.filter((node) => !strikes.isBusy(node));
    const seen = await Promise.all(healthy.map((node) => sample(node, () => strikes.memoryOf(node))));
    this.samples.push(...seen.filter((one) => one !== undefined));
  }
}
