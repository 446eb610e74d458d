// The faults of a run, drawn before it begins: what, to whom, when and for how long. A pure function of the seed. Whether a fault can be made when its time has come, and
// is not too much for what is already broken, is decided by those who make them.
import { type Chance, chanceOf } from "../../harness/chance.js";

export type LinkFault =
  | "partitioned"
  | "slow"
  | "replies dropped"
  | "requests dropped"
  | "replies held"
  | "requests held"
  | "refused"
  | "cut";
export const linkFaults: readonly LinkFault[] = [
  "partitioned",
  "slow",
  "replies dropped",
  "requests dropped",
  "replies held",
  "requests held",
  "refused",
  "cut",
];

export type Fault =
  | { readonly kind: "node killed" | "node paused"; readonly node: number }
  | { readonly kind: "nodes wiped"; readonly nodes: readonly number[] }
  | { readonly kind: "node clock shifted"; readonly node: number; readonly byMs: number }
  | { readonly kind: "way to nodes"; readonly how: LinkFault; readonly clients: readonly number[]; readonly nodes: readonly number[] }
  | { readonly kind: "way of gateway to nodes"; readonly how: LinkFault; readonly gateway: number; readonly nodes: readonly number[] }
  | { readonly kind: "way to gateway"; readonly how: LinkFault; readonly clients: readonly number[]; readonly gateway: number }
  | { readonly kind: "way of gateway to store"; readonly how: LinkFault; readonly gateway: number }
  | { readonly kind: "way of owner to store"; readonly how: LinkFault; readonly client: number }
  | { readonly kind: "way to standby"; readonly how: LinkFault }
  | { readonly kind: "gateway killed" | "gateway paused" | "gateway drained"; readonly gateway: number }
  | { readonly kind: "store crashed" | "store restarted" | "store paused" | "store failed over" }
  | { readonly kind: "client stopped" | "client killed"; readonly client: number };

export type FaultKind = Fault["kind"];

export type Planned = Fault & { readonly atMs: number; readonly lastsMs: number };

export interface Surroundings {
  readonly nodes: number;
  readonly gateways: number;
  readonly clients: number;
}

/** Between the beginnings of two faults, on average. */
const PACE_MS = 260;
/** After a fault comes a calm with this probability, so that what was broken can become whole and the system be ordinary. */
const CALM = 0.05;
const CALM_MS = 2_500;
/** The store fails over once, when so much of the run is over. */
const FAILOVER_AT = 0.55;

export function schedule(seed: string, durationMs: number, surroundings: Surroundings): Planned[] {
  const chance = chanceOf(seed, "schedule");
  const planned: Planned[] = [{ kind: "store failed over", atMs: durationMs * FAILOVER_AT, lastsMs: 0 }];
  for (let atMs = 0; ; ) {
    atMs += chance.between(PACE_MS / 2, PACE_MS * 1.5) + (chance.happens(CALM) ? CALM_MS : 0);
    if (atMs >= durationMs) break;
    planned.push({ ...draw(chance, surroundings), atMs, lastsMs: chance.between(20, chance.happens(0.2) ? 1_500 : 500) });
  }
  return planned.sort((a, b) => a.atMs - b.atMs);
}

const weights: Readonly<Record<Exclude<FaultKind, "store failed over">, number>> = {
  "node killed": 3,
  "node paused": 3,
  "nodes wiped": 5,
  "node clock shifted": 1,
  "way to nodes": 6,
  "way of gateway to nodes": 2,
  "way to gateway": 5,
  "way of gateway to store": 4,
  "way of owner to store": 1,
  "way to standby": 1,
  "gateway killed": 1,
  "gateway paused": 2,
  "gateway drained": 1,
  "store crashed": 1,
  "store restarted": 0.5,
  "store paused": 1,
  "client stopped": 4,
  "client killed": 0.7,
};

function draw(chance: Chance, { nodes, gateways, clients }: Surroundings): Fault {
  const any = (count: number): number => chance.between(0, count - 1);
  const list = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const how = chance.one(linkFaults);
  const kind = weighted(chance);
  switch (kind) {
    case "node killed":
    case "node paused":
      return { kind, node: any(nodes) };
    case "nodes wiped":
      return { kind, nodes: chance.some(list(nodes), chance.happens(0.4) ? 2 : 1) };
    case "node clock shifted":
      return { kind, node: any(nodes), byMs: chance.happens(0.5) ? -chance.between(50, 1_500) : chance.between(50, 5_000) };
    case "way to nodes":
      return { kind, how, ...scope(chance, { nodes, clients }) };
    case "way of gateway to nodes":
      return { kind, how, gateway: any(gateways), nodes: chance.some(list(nodes), chance.between(1, nodes)) };
    case "way to gateway":
      return { kind, how, gateway: any(gateways), clients: chance.some(list(clients), chance.one([1, Math.ceil(clients / 2), clients])) };
    case "way of gateway to store":
    case "gateway killed":
    case "gateway paused":
    case "gateway drained":
      return kind === "way of gateway to store" ? { kind, how, gateway: any(gateways) } : { kind, gateway: any(gateways) };
    case "way of owner to store":
      return { kind, how, client: any(clients) };
    case "way to standby":
      return { kind, how };
    case "client stopped":
    case "client killed":
      return { kind, client: any(clients) };
    default:
      return { kind };
  }
}

// One node for everybody, one or two for some clients, or all nodes for one client.
function scope(chance: Chance, { nodes, clients }: { nodes: number; clients: number }): { clients: number[]; nodes: number[] } {
  const list = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
  const wide = chance.one(["everybody", "some", "one"] as const);
  if (wide === "everybody") return { clients: list(clients), nodes: chance.some(list(nodes), 1) };
  if (wide === "one") return { clients: chance.some(list(clients), 1), nodes: list(nodes) };
  return { clients: chance.some(list(clients), Math.ceil(clients / 2)), nodes: chance.some(list(nodes), chance.between(1, 2)) };
}

function weighted(chance: Chance): Exclude<FaultKind, "store failed over"> {
  const entries = Object.entries(weights) as [Exclude<FaultKind, "store failed over">, number][];
  let left = chance.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [kind, weight] of entries) {
    left -= weight;
    if (left < 0) return kind;
  }
  return "client stopped";
}
