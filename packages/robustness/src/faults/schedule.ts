// The faults of a run, drawn before it begins: what, where, when and for how long; a function of
// the seed. Whether a fault can be made when its time has come is decided then, by what is already
// broken.
import { type Chance, chanceOf } from "../traffic/chance.js";
import { type LinkFault, linkFaults } from "./network.js";

type DrawnFault =
  /** `limit`: how many nodes may have a fault at once. */
  | { readonly kind: "node killed" | "node paused"; readonly node: number; readonly limit: number }
  | { readonly kind: "nodes wiped"; readonly nodes: readonly number[]; readonly limit: number }
  | { readonly kind: "node clock shifted"; readonly node: number; readonly byMs: number }
  | BrokenLinks
  | { readonly kind: "gateway killed" | "gateway paused" | "gateway drained"; readonly gateway: number }
  | { readonly kind: "store crashed" | "store restarted" | "store paused" | "store failed over" }
  | { readonly kind: "client stopped" | "client killed"; readonly client: number };

export type BrokenLinks = { readonly how: LinkFault; readonly slowMs: number } & (
  | { readonly kind: "link to nodes"; readonly clients: readonly number[]; readonly nodes: readonly number[] }
  | { readonly kind: "link of gateway to nodes"; readonly gateway: number; readonly nodes: readonly number[] }
  | { readonly kind: "link to gateway"; readonly clients: readonly number[]; readonly gateway: number }
  | { readonly kind: "link of gateway to store"; readonly gateway: number }
  | { readonly kind: "link of guarded table to store"; readonly client: number }
  | { readonly kind: "link to standby" }
);

export type FaultKind = DrawnFault["kind"];
export type PlannedFault = DrawnFault & { readonly atMs: number; readonly lastsMs: number };

interface Duration {
  readonly least: number;
  readonly most: number;
  /** Where given, one fault in five may last for up to this time. */
  readonly long?: number;
}

export interface Plan {
  readonly durationMs: number;
  readonly nodes: number;
  readonly gateways: number;
  readonly clients: number;
  /** How often each kind is drawn, relative to the others. */
  readonly weights: Readonly<Partial<Record<FaultKind, number>>>;
  /** Between the beginnings of two faults, on average. */
  readonly paceMs: number;
  /** After a fault comes a calm with this probability, so that what was broken can recover. */
  readonly calm: { readonly probability: number; readonly ms: number };
  readonly lastsMs: Duration;
  /** Of the kinds that last for another time. */
  readonly lastsMsOf?: Readonly<Partial<Record<FaultKind, Duration>>>;
  readonly slowMs: { readonly least: number; readonly most: number };
  /** How often a fault may take one node more than a quorum can spare. */
  readonly beyondQuorum: number;
  /** The store fails over once, when so much of the run is over. */
  readonly failoverAt?: number;
}

/** As many nodes as a quorum of five can spare. */
export const SPARED_NODES = 2;

export function schedule(seed: string, plan: Plan): PlannedFault[] {
  const chance = chanceOf(seed, "schedule");
  const { durationMs, paceMs, calm, failoverAt } = plan;
  const planned: PlannedFault[] =
    failoverAt === undefined ? [] : [{ kind: "store failed over", atMs: durationMs * failoverAt, lastsMs: 0 }];
  for (let atMs = 0; ; ) {
    atMs += chance.between(paceMs / 2, paceMs * 1.5) + (chance.happens(calm.probability) ? calm.ms : 0);
    if (atMs >= durationMs) break;
    const fault = draw(chance, plan);
    planned.push({ ...fault, atMs, lastsMs: drawDuration(chance, plan.lastsMsOf?.[fault.kind] ?? plan.lastsMs) });
  }
  return planned.sort((a, b) => a.atMs - b.atMs);
}

function drawDuration(chance: Chance, { least, most, long }: Duration): number {
  return chance.between(least, long !== undefined && chance.happens(0.2) ? long : most);
}

function draw(chance: Chance, plan: Plan): DrawnFault {
  const { nodes, gateways, clients } = plan;
  const any = (count: number): number => chance.between(0, count - 1);
  const link = { how: chance.one(linkFaults), slowMs: chance.between(plan.slowMs.least, plan.slowMs.most) };
  const limit = SPARED_NODES + (chance.happens(plan.beyondQuorum) ? 1 : 0);
  const [kind] = chance.weighted(Object.entries(plan.weights) as [FaultKind, number][], ([, weight]) => weight);
  switch (kind) {
    case "node killed":
    case "node paused":
      return { kind, node: any(nodes), limit };
    case "nodes wiped":
      return { kind, nodes: chance.some(list(nodes), chance.happens(0.4) ? 2 : 1), limit };
    case "node clock shifted":
      return { kind, node: any(nodes), byMs: chance.happens(0.5) ? -chance.between(50, 1_500) : chance.between(50, 5_000) };
    case "link to nodes":
      return { kind, ...link, ...scope(chance, { nodes, clients }) };
    case "link of gateway to nodes":
      return { kind, ...link, gateway: any(gateways), nodes: chance.some(list(nodes), chance.between(1, nodes)) };
    case "link to gateway":
      return {
        kind,
        ...link,
        gateway: any(gateways),
        clients: chance.some(list(clients), chance.one([1, Math.ceil(clients / 2), clients])),
      };
    case "link of gateway to store":
      return { kind, ...link, gateway: any(gateways) };
    case "link of guarded table to store":
      return { kind, ...link, client: any(clients) };
    case "link to standby":
      return { kind, ...link };
    case "gateway killed":
    case "gateway paused":
    case "gateway drained":
      return { kind, gateway: any(gateways) };
    case "client stopped":
    case "client killed":
      return { kind, client: any(clients) };
    default:
      return { kind };
  }
}

// One node for all clients, one or two nodes for half of them, or all nodes for one client.
function scope(chance: Chance, { nodes, clients }: { nodes: number; clients: number }): { clients: number[]; nodes: number[] } {
  const width = chance.one(["all", "half", "one"] as const);
  if (width === "all") return { clients: list(clients), nodes: chance.some(list(nodes), 1) };
  if (width === "one") return { clients: chance.some(list(clients), 1), nodes: list(nodes) };
  return { clients: chance.some(list(clients), Math.ceil(clients / 2)), nodes: chance.some(list(nodes), chance.between(1, 2)) };
}

function list(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
