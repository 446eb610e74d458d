// Fleets as a change of their list sees them: each has the list that it took, and gives leases by
// it. Noted is where two hold one resource, or a token sinks. Not a test.
import { type Plan, planChange } from "../../../src/fleets/list-plan.js";
import { markOfLongest, type Standings } from "../../../src/fleets/longest-lease.js";
import { compareLists, type FleetList, type ListStep, type Standing } from "../../../src/protocol/fleet-list.js";
import type { FleetsChange } from "../../../src/protocol/fleets.js";
import { homeIn } from "../../../src/protocol/routing.js";

export const RESOURCES = Array.from({ length: 12 }, (_, i) => `r${i}`);
export const LEASE_MS = 100;
/** Such a lease is over soon enough after its fleet has stopped. */
const MAX_TTL_MS = 50;
/** Above all tokens that are given here. */
const CLOCK_FLOOR = 1_000_000;

interface Lease {
  readonly resource: string;
  readonly untilMs: number;
}

/** One fleet: what its nodes have agreed on, and the leases it gave. */
export class SimulatedFleet {
  list: FleetList | undefined;
  sinceMs = 0;
  floor = 0;
  leases: Lease[] = [];
  readonly name: string;

  constructor(name: string, list: FleetList | undefined) {
    this.name = name;
    this.list = list;
  }

  standing(nowMs: number): Standing {
    const { list, floor, name } = this;
    const outwaitMs = Math.max(0, this.sinceMs + LEASE_MS - nowMs);
    const marks = new Map(NAMES.map((each) => [markOfLongest(`id-${each}`), MAX_TTL_MS]));
    return { id: `id-${name}`, list, floor, marks, outwaitMs, maxTtlMs: MAX_TTL_MS, longestMs: LEASE_MS, members: [] };
  }

  isHome(resource: string): boolean {
    if (this.list === undefined || this.list.version === 0) return false;
    return homeIn(this.list.fleets, resource)?.id === `id-${this.name}`;
  }
}

export class World {
  nowMs = 1_000;
  readonly fleets: ReadonlyMap<string, SimulatedFleet>;
  readonly #tokens = new Map<string, number>();
  readonly broken: string[] = [];
  /** Gone for good, with what they stored; their leases run on. */
  readonly lost = new Set<string>();

  constructor(fleets: readonly SimulatedFleet[]) {
    this.fleets = new Map(fleets.map((fleet) => [fleet.name, fleet]));
  }

  read(): Standings {
    return new Map([...this.fleets].map(([name, fleet]) => [name, this.lost.has(name) ? undefined : fleet.standing(this.nowMs)]));
  }

  lease(name: string, resource: string): void {
    const fleet = this.fleets.get(name);
    if (fleet === undefined || this.lost.has(name) || !fleet.isHome(resource)) return;
    const running = [...this.fleets.values()].filter(({ leases }) =>
      leases.some((lease) => lease.resource === resource && lease.untilMs > this.nowMs),
    );
    if (running.includes(fleet)) return;
    if (running.length > 0) this.broken.push(`${resource} is held in ${running[0]?.name} and in ${name}`);
    fleet.floor++;
    const last = this.#tokens.get(resource) ?? 0;
    if (fleet.floor <= last) this.broken.push(`${resource} got ${fleet.floor} in ${name} after ${last}`);
    this.#tokens.set(resource, Math.max(last, fleet.floor));
    fleet.leases.push({ resource, untilMs: this.nowMs + LEASE_MS });
  }

  take(name: string, { from, to }: ListStep, floor: number): void {
    const fleet = this.fleets.get(name);
    if (fleet === undefined || this.lost.has(name)) return;
    fleet.floor = Math.max(fleet.floor, floor);
    if (compareLists(fleet.list, from) !== 0) return;
    fleet.list = to;
    fleet.sinceMs = this.nowMs;
  }
}

export function listOf(version: number, ...names: readonly string[]): FleetList {
  return { version, fleets: names.map((name) => ({ name, id: `id-${name}` })) };
}

export const NAMES = ["a", "b", "c", "d"];

/** As the changer does: above the clock's floor, where it was told that fleets are lost. */
export function stepOf(world: World, plan: Plan, { which, isLost = false }: { readonly which: number; readonly isLost?: boolean }): void {
  if (plan.kind !== "close" && plan.kind !== "open") return;
  const steps = [...plan.steps];
  const [name, step] = steps[which % steps.length] ?? [];
  const byClock = isLost ? CLOCK_FLOOR : 0;
  if (name !== undefined && step !== undefined) world.take(name, step, plan.kind === "open" ? Math.max(plan.floor, byClock) : 0);
}

/** What becomes of the change if somebody carries it on to its end. */
export function finish(world: World, change: FleetsChange): Plan {
  const beganMs = world.nowMs;
  for (let rounds = 0; rounds < 30; rounds++) {
    const plan = planChange(world.read(), change, world.nowMs - beganMs);
    if (plan.kind === "done" || plan.kind === "refused") return plan;
    if (plan.kind === "wait") world.nowMs += plan.waitMs;
    else for (let which = 0; which < plan.steps.size; which++) stepOf(world, plan, { which, isLost: "lost" in change });
  }
  return { kind: "wait", why: "it never ends", waitMs: 0, outwaits: false };
}
