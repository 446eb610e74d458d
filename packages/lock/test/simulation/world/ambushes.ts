// Several faults at the worst moment together. Chance alone hardly ever brings about what it takes to hurt a rule that only matters when rare things coincide; an ambush
// waits for its moment and then does them at once. It knows what happens on the nodes, and uses nothing but the faults that there are.
import { majority } from "#lock/quorum/tally.js";
import type { Timeline } from "../engine/timeline.js";
import type { Machine } from "../network/machine.js";
import type { Executed } from "../server/sim-server.js";
import type { Faults } from "./faults.js";
import { type Ambush, type AmbushKind, ambushKinds, type FaultKind, type Scenario } from "./scenario.js";
import { NAMESPACE } from "./station.js";

export interface Terrain {
  readonly timeline: Timeline;
  readonly scenario: Scenario;
  readonly machines: readonly Machine[];
  readonly faults: Faults;
  readonly tell: ((actor: string, what: string) => void) | undefined;
}

type Undo = () => void;

/** What an ambush waits for on the nodes; what it has done is over by itself some time later. */
interface Watch {
  readonly endsAt: number;
  /** true: that was it. */
  sees(executed: Executed): boolean;
}

const FROM_ALL = 1;
const FROM_ONE = 0;
/** So long somebody is held back at most. */
const LATE_WITHIN_MS = 2_500;
/** What was held and goes on has arrived by then. */
const ARRIVES_WITHIN_MS = 5;
/** The strongest jump of a node's clock, two seconds ahead: every wait looks over. */
const AHEAD = 1;

export class Ambushes {
  /** How many struck. */
  readonly counts = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  readonly #terrain: Terrain;
  readonly #watches = new Set<Watch>();

  constructor(terrain: Terrain) {
    this.#terrain = terrain;
    const { timeline, scenario } = terrain;
    for (const ambush of scenario.ambushes) if (ambush.atMs < scenario.stormMs) timeline.at(ambush.atMs, () => this.#lie(ambush));
  }

  /** A script was executed; its answer has not left yet. */
  executed(executed: Executed): void {
    if (this.#watches.size === 0) return;
    for (const watch of [...this.#watches])
      if (watch.endsAt < this.#terrain.timeline.now || watch.sees(executed)) this.#watches.delete(watch);
  }

  #lie(ambush: Ambush): void {
    if (ambush.kind === "half-way") this.#awaitGrant(ambush);
    else if (ambush.kind === "left behind") this.#leaveBehind(ambush);
    else this.#awaitVisit(ambush);
  }

  /** One node has granted, the others have not been reached: the one forgets it all, and is rebuilt from the others, and then just enough of them are reached, and no more. */
  #awaitGrant(ambush: Ambush): void {
    this.#watch(ambush.lastsMs, ({ server, name, keys, args, reply }) => {
      const token = name === "grant" ? tokenIn(reply) : undefined;
      const client = clientOf(args[1]);
      if (token === undefined || client === undefined) return false;
      const node = indexIn(server.name);
      if (!this.#others(node).every((other) => this.#isBehind(other, { lockKey: keys[1] ?? "", token }))) return false;
      this.#soon(() => this.#strikeHalfWay(ambush, { node, client }));
      return true;
    });
  }

  #strikeHalfWay({ lastsMs, strength }: Ambush, { node, client }: { readonly node: number; readonly client: number }): void {
    const { scenario, timeline } = this.#terrain;
    const wiped = this.#inflict(strength < 0.3 ? "wipe node" : "flush node", { node, client, lastsMs: 1, strength: FROM_ALL });
    if (wiped === undefined) return;
    this.#terrain.tell?.("fault", `ambush half-way: n${node + 1} forgets what it granted p${client + 1}, which the others do not hear of`);
    this.counts["half-way"]++;
    const { behind, upToDate } = this.#halvesBut(node);
    const hold = (other: number): Undo | undefined => this.#inflict("hold requests", { node: other, client, lastsMs, strength: FROM_ONE });
    const held = upToDate.map(hold);
    for (const other of behind) hold(other);
    this.#hurry(node, lastsMs);
    this.#watch(lastsMs, ({ server, name, reply }) => {
      if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
      this.#soon(() => {
        for (const release of held) release?.();
        for (const other of behind) this.#inflict("cut", { node: other, client, lastsMs: 1, strength: FROM_ONE });
      });
      timeline.after(ARRIVES_WITHIN_MS, () => this.#silence(upToDate, 20 + strength * scenario.ttlMs));
      return true;
    });
  }

  /** Some nodes hear nothing for a while; then one of those that did loses just that while, and after it was rebuilt nobody hears from the rest. */
  #leaveBehind({ node, lastsMs, strength }: Ambush): void {
    const { scenario, timeline, tell } = this.#terrain;
    const forgetful = node % scenario.nodes;
    const { behind, upToDate } = this.#halvesBut(forgetful);
    tell?.("fault", `ambush left behind: nodes ${behind.map((other) => other + 1)} hear nothing, then n${forgetful + 1} forgets it`);
    this.#silence(behind, lastsMs);
    timeline.after(lastsMs, () => {
      if (this.#inflict("lose tail", { node: forgetful, client: 0, lastsMs: 1, strength: 0 }) === undefined) return;
      this.counts["left behind"]++;
      this.#watch(4 * scenario.ttlMs + 1_000, ({ server, name, reply }) => {
        if (indexIn(server.name) !== forgetful || !isAdmission({ name, reply })) return false;
        this.#soon(() => this.#silence(upToDate, 20 + strength * scenario.ttlMs));
        return true;
      });
    });
  }

  /** A node forgets, and somebody who is about to believe it again, as the fleet was, is held back. */
  #awaitVisit(ambush: Ambush): void {
    const node = ambush.node % this.#terrain.scenario.nodes;
    if (this.#inflict("flush node", { node, client: 0, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
    this.#watch(LATE_WITHIN_MS, ({ server, name, args }) => {
      const client = clientOf(args[0]);
      if (name !== "visit" || client === undefined || indexIn(server.name) === node) return false;
      this.#soon(() => this.#strikeLate(ambush, { node, client }));
      return true;
    });
  }

  /** Somebody else does it, the fleet goes on, the node forgets once more; and then the belated one comes. */
  #strikeLate({ lastsMs, strength }: Ambush, { node, client }: { readonly node: number; readonly client: number }): void {
    const { scenario, timeline, tell } = this.#terrain;
    const { behind, upToDate } = this.#halvesBut(node);
    tell?.("fault", `ambush belated: p${client + 1} will admit n${node + 1} only after it has forgotten twice`);
    const held = this.#inflict("hold requests", { node, client, lastsMs: LATE_WITHIN_MS, strength: FROM_ONE });
    this.#hurry(node, LATE_WITHIN_MS);
    this.#watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
      if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
      this.#soon(() => this.#silence(behind, lastsMs));
      timeline.after(lastsMs, () => {
        const isFlushed = this.#inflict("flush node", { node, client, lastsMs: 1, strength: FROM_ALL }) !== undefined;
        if (isFlushed) this.counts.belated++;
        if (isFlushed) this.#silence(upToDate, 20 + strength * scenario.ttlMs);
        held?.();
      });
      return true;
    });
  }

  /** Nobody is heard by these nodes. */
  #silence(nodes: readonly number[], lastsMs: number): void {
    for (const node of nodes) this.#inflict("hold requests", { node, client: 0, lastsMs, strength: FROM_ALL });
  }

  /** Whatever waits for the node's clock has waited long enough, until it is admitted. */
  #hurry(node: number, forMs: number): void {
    if (this.#terrain.scenario.clocks !== "wild") return;
    this.#watch(forMs, ({ server, name, args, reply }) => {
      if (indexIn(server.name) !== node) return false;
      if (name === "mark" && args.length > 0)
        this.#soon(() => this.#inflict("jump node", { node, client: 0, lastsMs: 1, strength: AHEAD }));
      return isAdmission({ name, reply });
    });
  }

  #inflict(kind: FaultKind, how: { node: number; client: number; lastsMs: number; strength: number }): Undo | undefined {
    return this.#terrain.faults.begin({ kind, atMs: this.#terrain.timeline.now, ...how });
  }

  /** What it knows does not include the token, nor anything that a floor makes up for, and it would grant the lock. */
  #isBehind(node: number, { lockKey, token }: { readonly lockKey: string; readonly token: number }): boolean {
    const server = this.#terrain.machines[node]?.server;
    const floor = server?.memory.hash(`{${NAMESPACE}}:node`, server.wallMs())?.get("floor");
    return floor !== undefined && Number(floor) < token && server?.memory.get(lockKey, server.wallMs()) === undefined;
  }

  #watch(forMs: number, sees: Watch["sees"]): void {
    this.#watches.add({ endsAt: this.#terrain.timeline.now + forMs, sees });
  }

  #soon(run: () => void): void {
    const { timeline } = this.#terrain;
    timeline.at(timeline.now, run);
  }

  /** All nodes but one, in two halves: each makes a majority with that one. */
  #halvesBut(node: number): { readonly behind: readonly number[]; readonly upToDate: readonly number[] } {
    const others = this.#others(node);
    const half = majority(this.#terrain.scenario.nodes) - 1;
    return { behind: others.slice(0, half), upToDate: others.slice(half) };
  }

  #others(node: number): readonly number[] {
    return Array.from({ length: this.#terrain.scenario.nodes }, (_, i) => i).filter((other) => other !== node);
  }
}

/** Of the first request of a call, if it was granted. */
function tokenIn(reply: Executed["reply"]): number | undefined {
  const first = Array.isArray(reply) ? reply[1] : reply;
  return typeof first === "number" ? first : undefined;
}

function isAdmission({ name, reply }: Pick<Executed, "name" | "reply">): boolean {
  return name === "admit" && Array.isArray(reply) && reply[0] === "1";
}

/** Whose process an owner's secret belongs to: p1a-17… is of the first. */
function clientOf(owner: string | undefined): number | undefined {
  const number = Number(/^p(\d+)/.exec(owner ?? "")?.[1]);
  return number > 0 ? number - 1 : undefined;
}

function indexIn(server: string): number {
  return Number(server.slice(1)) - 1;
}
