// Whoever makes the faults: again and again, one of the kinds, while earlier ones may still last, in storms with calm between them. It knows the clients only as processes to stop, and it ends by
// undoing everything.
import { setTimeout as sleep } from "node:timers/promises";
import type { Chance } from "../../harness/chance.js";
import type { Crew } from "./crew.js";
import type { NetworkFaults } from "./network-faults.js";
import type { NodeFaults } from "./node-faults.js";

export interface NemesisSettings {
  readonly chance: Chance;
  readonly crew: Crew;
  readonly nodes: NodeFaults;
  readonly network: NetworkFaults;
  readonly maxTtlMs: number;
}

/** Between the beginnings of two faults, on average. */
const PACE_MS = 120;
const UNDER_WAY = 4;
/** After a fault comes a calm with this probability. What was broken has time to become whole, and the lock to be ordinary. */
const CALM = 0.06;
const CALM_MS = 1_500;

/** Goes on until the signal comes; resolves when every fault is undone. */
export async function torment({ chance, crew, nodes, network, maxTtlMs }: NemesisSettings, signal: AbortSignal): Promise<void> {
  const underWay = new Set<Promise<void>>();
  const begin = (fault: Promise<void>): void => {
    underWay.add(fault);
    void fault.then(() => underWay.delete(fault));
  };
  while (!signal.aborted) {
    const kind = chance.one(["node", "node", "node", "network", "network", "network", "client"] as const);
    if (kind === "client") crew.stop(chance.between(0, crew.size - 1), maxTtlMs + chance.between(0, 300));
    else if (underWay.size < UNDER_WAY) begin((kind === "node" ? nodes : network).strike());
    const calmMs = chance.happens(CALM) ? CALM_MS : 0;
    await Promise.all([nodes.look(), sleep(calmMs + chance.between(PACE_MS / 2, PACE_MS * 1.5), undefined, { signal }).catch(nameAbort)]);
  }
  await Promise.all(underWay);
  await nodes.look();
}

// The run is over.
function nameAbort(error: Error): "aborted" {
  if (error.name === "AbortError") return "aborted";
  throw error;
}
