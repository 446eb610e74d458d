// Where ambushes lie: what they see of the nodes, and what they can do there. It has no faults of its own, only those that there are.
import { majority } from "#lock/quorum/tally.js";
import type { Timeline } from "../../engine/timeline.js";
import type { Machine } from "../../network/machine.js";
import type { Executed } from "../../server/sim-server.js";
import type { Faults } from "../faults.js";
import { type Ambush, type AmbushKind, ambushKinds, type FaultKind, type Scenario } from "../scenario.js";
import { NAMESPACE } from "../station.js";

export interface Terrain {
  readonly timeline: Timeline;
  readonly scenario: Scenario;
  readonly machines: readonly Machine[];
  readonly faults: Faults;
  readonly tell: ((actor: string, what: string) => void) | undefined;
}

export type Undo = () => void;

/** true: that was it. */
type Sees = (executed: Executed) => boolean;

/** What an ambush waits for on the nodes. */
interface Watch {
  readonly endsAt: number;
  readonly sees: Sees;
}

export const FROM_ALL = 1;
export const FROM_ONE = 0;
/** The strongest jump of a node's clock, two seconds ahead: every wait looks over. */
const AHEAD = 1;

export class Ground {
  /** How many struck. */
  readonly counts = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  readonly #terrain: Terrain;
  readonly #watches = new Set<Watch>();

  constructor(terrain: Terrain) {
    this.#terrain = terrain;
  }

  get scenario(): Scenario {
    return this.#terrain.scenario;
  }

  /** A script was executed; its answer has not left yet. */
  executed(executed: Executed): void {
    if (this.#watches.size === 0) return;
    for (const watch of [...this.#watches])
      if (watch.endsAt < this.#terrain.timeline.now || watch.sees(executed)) this.#watches.delete(watch);
  }

  tell(what: string): void {
    this.#terrain.tell?.("fault", `ambush ${what}`);
  }

  watch(forMs: number, sees: Sees): void {
    this.#watches.add({ endsAt: this.#terrain.timeline.now + forMs, sees });
  }

  after(waitMs: number, run: () => void): void {
    this.#terrain.timeline.after(waitMs, run);
  }

  /** At this moment, but not in the middle of what is happening. */
  soon(run: () => void): void {
    const { timeline } = this.#terrain;
    timeline.at(timeline.now, run);
  }

  inflict(kind: FaultKind, how: Pick<Ambush, "node" | "lastsMs" | "strength"> & { readonly client: number }): Undo | undefined {
    return this.#terrain.faults.begin({ kind, atMs: this.#terrain.timeline.now, ...how });
  }

  /** Nobody is heard by these nodes. */
  silence(nodes: readonly number[], lastsMs: number): void {
    for (const node of nodes) this.inflict("hold requests", { node, client: 0, lastsMs, strength: FROM_ALL });
  }

  /** Whatever waits for the node's clock has waited long enough, until it is admitted. */
  hurry(node: number, forMs: number): void {
    if (this.scenario.clocks !== "wild") return;
    this.watch(forMs, ({ server, name, args, reply }) => {
      if (indexIn(server.name) !== node) return false;
      if (name === "openAdmission" && args.length > 0)
        this.soon(() => this.inflict("jump node", { node, client: 0, lastsMs: 1, strength: AHEAD }));
      return isAdmission({ name, reply });
    });
  }

  /** What it knows does not include the token, nor anything that a floor makes up for, and it would grant the lock. */
  isBehind(node: number, { lockKey, token }: { readonly lockKey: string; readonly token: number }): boolean {
    const server = this.#terrain.machines[node]?.server;
    const floor = server?.memory.hash(`{${NAMESPACE}}:node`, server.wallMs())?.get("floor");
    return floor !== undefined && Number(floor) < token && server?.memory.get(lockKey, server.wallMs()) === undefined;
  }

  /** All nodes but one, in two halves: each makes a majority with that one. */
  halvesBut(node: number): { readonly behind: readonly number[]; readonly upToDate: readonly number[] } {
    const others = this.others(node);
    const half = majority(this.scenario.nodes) - 1;
    return { behind: others.slice(0, half), upToDate: others.slice(half) };
  }

  others(node: number): readonly number[] {
    return Array.from({ length: this.scenario.nodes }, (_, i) => i).filter((other) => other !== node);
  }
}

/** Of the first request of a call, if it was granted. */
export function tokenIn(reply: Executed["reply"]): number | undefined {
  const first = Array.isArray(reply) ? reply[1] : reply;
  return typeof first === "number" ? first : undefined;
}

export function isAdmission({ name, reply }: Pick<Executed, "name" | "reply">): boolean {
  return name === "admit" && Array.isArray(reply) && reply[0] === "1";
}

/** Whose process an owner's secret belongs to: p1a-17… is of the first. */
export function clientOf(owner: string | undefined): number | undefined {
  const number = Number(/^p(\d+)/.exec(owner ?? "")?.[1]);
  return number > 0 ? number - 1 : undefined;
}

export function indexIn(server: string): number {
  return Number(server.slice(1)) - 1;
}
