// What an ambush sees of the nodes, and the faults that it can inflict there.
import { majority } from "#lock/quorum.js";
import type { Timeline } from "../../engine/timeline.js";
import type { Machine } from "../../network/path.js";
import type { Executed } from "../../server/sim-server.js";
import type { Faults } from "../faults.js";
import { NAMESPACE } from "../host.js";
import { type Ambush, type AmbushKind, ambushKinds, type FaultKind, type Scenario } from "../scenario.js";

export interface SceneSettings {
  readonly timeline: Timeline;
  readonly scenario: Scenario;
  readonly machines: readonly Machine[];
  readonly faults: Faults;
  readonly log: ((actor: string, what: string) => void) | undefined;
}

export type Undo = () => void;

/** true: the awaited moment; the watch ends. */
type Sees = (executed: Executed) => boolean;

/** An ambush waits for a moment. */
interface Watch {
  readonly endsAt: number;
  readonly sees: Sees;
}

export const FROM_ALL = 1;
export const FROM_ONE = 0;
/** The strongest jump of a node's clock, two seconds ahead: it ends every wait. */
export const AHEAD = 1;

export class Scene {
  /** How many struck. */
  readonly counts = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  readonly #settings: SceneSettings;
  readonly #watches = new Set<Watch>();

  constructor(settings: SceneSettings) {
    this.#settings = settings;
  }

  get scenario(): Scenario {
    return this.#settings.scenario;
  }

  /** Called after every script, before its answer is sent. */
  executed(executed: Executed): void {
    if (this.#watches.size === 0) return;
    for (const watch of [...this.#watches])
      if (watch.endsAt < this.#settings.timeline.now || watch.sees(executed)) this.#watches.delete(watch);
  }

  log(what: string): void {
    this.#settings.log?.("fault", `ambush ${what}`);
  }

  watch(forMs: number, sees: Sees): void {
    this.#watches.add({ endsAt: this.#settings.timeline.now + forMs, sees });
  }

  after(waitMs: number, run: () => void): void {
    this.#settings.timeline.after(waitMs, run);
  }

  /** At this moment, after the present event. */
  soon(run: () => void): void {
    const { timeline } = this.#settings;
    timeline.at(timeline.now, run);
  }

  inflict(kind: FaultKind, how: Pick<Ambush, "node" | "lastsMs" | "strength"> & { readonly client: number }): Undo | undefined {
    return this.#settings.faults.begin({ kind, atMs: this.#settings.timeline.now, ...how });
  }

  /** These nodes receive no requests. */
  silence(nodes: readonly number[], lastsMs: number): void {
    for (const node of nodes) this.inflict("hold requests", { node, client: 0, lastsMs, strength: FROM_ALL });
  }

  /** Until the node is admitted, every wait for its clock ends at once. Needs wild clocks. */
  hurry(node: number, forMs: number): void {
    if (this.scenario.clocks !== "wild") return;
    this.watch(forMs, ({ server, name, args, reply }) => {
      if (indexIn(server.name) !== node) return false;
      if (name === "openAdmission" && args.length > 0)
        this.soon(() => this.inflict("jump node", { node, client: 0, lastsMs: 1, strength: AHEAD }));
      return isAdmission({ name, reply });
    });
  }

  /** The node would grant the lock, and its floor is below the token. */
  isBehind(node: number, { lockKey, token }: { readonly lockKey: string; readonly token: number }): boolean {
    const server = this.#settings.machines[node]?.server;
    const floor = server?.memory.hash(`{${NAMESPACE}}:node`, server.wallMs())?.get("floor");
    return floor !== undefined && Number(floor) < token && server?.memory.get(lockKey, server.wallMs()) === undefined;
  }

  /** The other nodes in two halves: each half makes a majority together with this node. */
  halvesBut(node: number): { readonly behind: readonly number[]; readonly upToDate: readonly number[] } {
    const others = this.others(node);
    const half = majority(this.scenario.nodes) - 1;
    return { behind: others.slice(0, half), upToDate: others.slice(half) };
  }

  others(node: number): readonly number[] {
    return Array.from({ length: this.scenario.nodes }, (_, i) => i).filter((other) => other !== node);
  }
}

/** The token of a call's first request, if it was granted. */
export function tokenIn(reply: Executed["reply"]): number | undefined {
  const first = Array.isArray(reply) ? reply[1] : reply;
  return typeof first === "number" ? first : undefined;
}

/** The owner in a call's first request for a grant. */
export function grantedOwnerIn({ name, args }: Pick<Executed, "name" | "args">): string | undefined {
  if (name === "claim") return args[3];
  return name === "grant" ? args[2] : undefined;
}

export function isAdmission({ name, reply }: Pick<Executed, "name" | "reply">): boolean {
  return name === "admit" && Array.isArray(reply) && reply[0] === "1";
}

/** The index of the process that an owner's secret belongs to: 0 for p1a-17…. */
export function clientOf(owner: string | undefined): number | undefined {
  const number = Number(/^p(\d+)/.exec(owner ?? "")?.[1]);
  return number > 0 ? number - 1 : undefined;
}

export function indexIn(server: string): number {
  return Number(server.slice(1)) - 1;
}
