// What happens between clients and nodes. Every client has its own way to every node, so a node may be gone for some, late for others and deaf for one.
import { setTimeout as sleep } from "node:timers/promises";
import type { FaultProxy, FleetWay } from "@palisade/testkit";
import type { Chance } from "../../harness/chance.js";

export type NetworkFault = "partition" | "slow" | "drop replies" | "drop requests" | "hold replies" | "hold requests" | "refuse" | "cut";

const faults: Readonly<Record<NetworkFault, (link: FaultProxy, chance: Chance) => unknown>> = {
  partition: (link) => link.partition(),
  slow: (link, chance) => link.slow(chance.between(2, 60)),
  "drop replies": (link) => link.dropReplies(),
  "drop requests": (link) => link.dropRequests(),
  "hold replies": (link) => link.holdReplies(),
  // They arrive when it heals: late, and from attempts that were given up.
  "hold requests": (link) => link.holdRequests(),
  refuse: (link) => link.refuse(),
  cut: (link) => link.cut(),
};
const names = Object.keys(faults) as NetworkFault[];

export class NetworkFaults {
  readonly counts: Record<string, number> = Object.fromEntries(names.map((name) => [name, 0]));
  readonly #ways: readonly FleetWay[];
  readonly #chance: Chance;

  constructor(ways: readonly FleetWay[], chance: Chance) {
    this.#ways = ways;
    this.#chance = chance;
  }

  /** Breaks some links and heals them after a while. Faults that meet on one link add up, and the first to heal heals all. */
  async strike(): Promise<void> {
    const name = this.#chance.one(names);
    const links = this.#choose();
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    const lastsMs = this.#chance.between(10, 500);
    await Promise.all(links.map((link) => faults[name](link, this.#chance)));
    await sleep(lastsMs);
    await Promise.all(links.map((link) => link.heal()));
  }

  // One node for everybody, one or two nodes for some, or all nodes for one client.
  #choose(): readonly FaultProxy[] {
    const chance = this.#chance;
    const nodes = Array.from({ length: this.#ways[0]?.proxies.length ?? 0 }, (_, node) => node);
    const scope = chance.one(["everybody", "some", "one"] as const);
    const ways = scope === "everybody" ? this.#ways : chance.some(this.#ways, scope === "one" ? 1 : Math.ceil(this.#ways.length / 2));
    const hit = scope === "one" ? nodes : chance.some(nodes, scope === "some" ? chance.between(1, 2) : 1);
    return ways.flatMap(({ proxies }) => hit.map((node) => proxies[node]).filter((link) => link !== undefined));
  }
}
