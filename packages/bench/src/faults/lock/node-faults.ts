// What happens to the servers: killed and started again with everything they had, wiped, stood still. Keeps the promise's condition: at most a minority of
// memories is lost at a time, and the next only after those were readmitted. One fault at a time on each node.
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisFleet, RedisNode } from "@palisade/testkit";
import type { Chance } from "../chance.js";
import type { Kind } from "./client-words.js";
import type { CounterSample } from "./history.js";
import { believed } from "../node-belief.js";
import { sample } from "./memory.js";

export type NodeFault = "kill" | "wipe" | "pause";

export interface NodeFaultSettings {
  readonly fleet: RedisFleet;
  readonly chance: Chance;
  /** A node of the control votes as soon as it is up. */
  readonly kind: Kind;
  readonly maxTtlMs: number;
  /** Whether a killed server has everything on its disk; if not, a kill is a loss of memory as well. */
  readonly killKeepsMemory: boolean;
  /** No more waiting for anybody to readmit a node. */
  readonly hopeless: AbortSignal;
}

/** So many nodes may be down, stopped or not believed at once: as many as a quorum can spare, and now and then one more. */
const AT_ONCE = 2;
const ONE_MORE = 0.15;

export class NodeFaults {
  readonly samples: CounterSample[] = [];
  readonly counts: Record<NodeFault, number> = { kill: 0, wipe: 0, pause: 0 };
  /** Nodes that nobody readmitted. */
  readonly forsaken: string[] = [];
  readonly #settings: NodeFaultSettings;
  readonly #busy = new Set<RedisNode>();
  readonly #memories = new Map<RedisNode, number>();
  #wiping = false;

  constructor(settings: NodeFaultSettings) {
    this.#settings = settings;
  }

  /** Makes one fault and undoes it; does nothing if the nodes have enough to bear. */
  async strike(): Promise<void> {
    const { chance, fleet, killKeepsMemory } = this.#settings;
    const fault = chance.one(["kill", "wipe", "wipe", "pause"] as const);
    const losesMemory = fault === "wipe" || (fault === "kill" && !killKeepsMemory);
    const count = fault === "wipe" && chance.happens(0.4) ? 2 : 1;
    const free = fleet.nodes.filter((node) => !this.#busy.has(node));
    if ((losesMemory && this.#wiping) || this.#busy.size + count > AT_ONCE + (chance.happens(ONE_MORE) ? 1 : 0)) return;
    const nodes = chance.some(free, count);
    for (const node of nodes) this.#busy.add(node);
    if (losesMemory) this.#wiping = true;
    const lastsMs = chance.between(10, fault === "pause" ? 900 : 300);
    await Promise.all(nodes.map((node) => this.#befall(node, fault, lastsMs)));
    if (losesMemory) this.#wiping = false;
    for (const node of nodes) this.#busy.delete(node);
  }

  /** Looks at the counters of all nodes that have no trouble now. */
  async look(): Promise<void> {
    const healthy = this.#settings.fleet.nodes.filter((node) => !this.#busy.has(node));
    const seen = await Promise.all(healthy.map((node) => sample(node, () => this.#memories.get(node) ?? 0)));
    this.samples.push(...seen.filter((one) => one !== undefined));
  }

  async #befall(node: RedisNode, fault: NodeFault, lastsMs: number): Promise<void> {
    this.counts[fault]++;
    if (fault === "pause") {
      await node.pause();
      await sleep(lastsMs);
      return node.resume();
    }
    if (fault === "wipe" || !this.#settings.killKeepsMemory) this.#memories.set(node, (this.#memories.get(node) ?? 0) + 1);
    await node.kill();
    await sleep(lastsMs);
    await node.restart({ forget: fault === "wipe" });
    if (this.#settings.kind === "naive") await sleep(this.#settings.maxTtlMs);
    else if (!(await believed(node, this.#settings.hopeless))) this.forsaken.push(node.name);
  }
}
