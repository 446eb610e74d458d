// The faults of a run, drawn before it begins: what, where, when and for how long; a function of
// the seed. Whether a fault can be made when its time has come is decided then, by what is already
// broken: the log says what happened.
import { type Chance, chanceOf } from "../chance.js";
import { nowMs, type Span } from "../history.js";

const linkFaults = [
  "partitioned",
  "slow",
  "replies dropped",
  "requests dropped",
  "replies held",
  "requests held",
  "refused",
  "cut",
] as const;
export type LinkFault = (typeof linkFaults)[number];

export type FaultKind =
  | `node ${"killed" | "paused" | "clock shifted"}`
  | "nodes wiped"
  | "link to nodes"
  | "link of gateway to nodes"
  | "link to gateway"
  | "link of gateway to store"
  | "link of guarded table to store"
  | "link to standby"
  | `gateway ${"killed" | "paused" | "drained"}`
  | `store ${"crashed" | "restarted" | "paused" | "failed over"}`
  | `client ${"stopped" | "killed"}`;

export interface PlannedFault {
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly lastsMs: number;
  /** What it meets: each kind has its own use for these. */
  readonly nodes: readonly number[];
  readonly clients: readonly number[];
  readonly gateway: number;
  /** How many nodes may have a fault at once. */
  readonly limit: number;
  /** Of a clock. */
  readonly byMs: number;
  /** Of links. */
  readonly how: LinkFault;
  readonly slowMs: number;
}

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
  const planned: PlannedFault[] = [];
  if (failoverAt !== undefined) planned.push({ ...draw(chance, plan, "store failed over"), atMs: durationMs * failoverAt });
  for (let atMs = 0; ; ) {
    atMs += chance.between(paceMs / 2, paceMs * 1.5) + (chance.happens(calm.probability) ? calm.ms : 0);
    if (atMs >= durationMs) return planned.sort((a, b) => a.atMs - b.atMs);
    const [kind] = chance.weighted(Object.entries(plan.weights) as [FaultKind, number][], ([, weight]) => weight);
    planned.push({ ...draw(chance, plan, kind), atMs });
  }
}

function draw(chance: Chance, plan: Plan, kind: FaultKind): Omit<PlannedFault, "atMs"> {
  const { nodes, gateways, clients, slowMs } = plan;
  const { least, most, long } = plan.lastsMsOf?.[kind] ?? plan.lastsMs;
  return {
    kind,
    lastsMs: chance.between(least, long !== undefined && chance.happens(0.2) ? long : most),
    nodes: chance.some(list(nodes), 1),
    clients: chance.some(list(clients), 1),
    gateway: chance.between(0, gateways - 1),
    limit: SPARED_NODES + (chance.happens(plan.beyondQuorum) ? 1 : 0),
    byMs: chance.happens(0.5) ? -chance.between(50, 1_500) : chance.between(50, 5_000),
    how: chance.one(linkFaults),
    slowMs: chance.between(slowMs.least, slowMs.most),
    ...drawWidth(chance, plan, kind),
  };
}

/** Of the kinds that meet more than one node or client. */
function drawWidth(chance: Chance, { nodes, clients }: Plan, kind: FaultKind): Partial<PlannedFault> {
  const some = (count: number, of: number): number[] => chance.some(list(of), count);
  const half = Math.ceil(clients / 2);
  if (kind === "nodes wiped") return { nodes: some(chance.happens(0.4) ? 2 : 1, nodes) };
  if (kind === "link of gateway to nodes") return { nodes: some(chance.between(1, nodes), nodes) };
  if (kind === "link to gateway") return { clients: some(chance.one([1, half, clients]), clients) };
  if (kind !== "link to nodes") return {};
  return chance.one([
    { clients: list(clients) },
    { clients: some(half, clients), nodes: some(chance.between(1, 2), nodes) },
    { nodes: list(nodes) },
  ]);
}

function list(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

interface Fault {
  readonly kind: string;
  readonly target: string;
  /** The report tells how long nothing was stored. */
  readonly isOfStore?: true;
}

export type InjectedFault = Fault & Span;

/** One fault at a time on each target. */
export class FaultLog {
  readonly injected: InjectedFault[] = [];
  readonly leftOut: Record<string, number> = {};
  /** The times in which a node's clock was set forward. */
  readonly clockJumps: Span[] = [];
  readonly #busy = new Map<object, Promise<void>>();

  /** From now until the returned function is called. */
  begin(fault: Fault): () => void {
    const fromAt = nowMs();
    const index = this.injected.push({ ...fault, fromAt, untilAt: Number.POSITIVE_INFINITY }) - 1;
    return () => {
      this.injected[index] = { ...fault, fromAt, untilAt: nowMs() };
    };
  }

  leaveOut(kind: string): void {
    this.leftOut[kind] = (this.leftOut[kind] ?? 0) + 1;
  }

  /** Left out if the target has a fault already. */
  async alone(target: object, fault: Fault, inject: () => Promise<void>): Promise<void> {
    if (this.#busy.has(target)) return this.leaveOut(fault.kind);
    const end = this.begin(fault);
    const done = inject().finally(() => {
      end();
      this.#busy.delete(target);
    });
    this.#busy.set(target, done);
    return done;
  }

  /** When the target has no fault. */
  async free(target: object): Promise<void> {
    while (this.#busy.has(target)) await this.#busy.get(target);
  }

  /** Faults that are not undone yet. */
  lasting(): string[] {
    return this.injected.filter(({ untilAt }) => untilAt === Number.POSITIVE_INFINITY).map(({ kind, target }) => `${kind} (${target})`);
  }
}
