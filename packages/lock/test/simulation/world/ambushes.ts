// Several faults at once, at the worst moment. A rule that matters only when rare events coincide
// is hardly ever hurt by chance; an ambush watches what the servers execute, waits for its moment, and
// then inflicts ordinary faults. README.md tells what each of the six does.
import { majority } from "#lock/quorum.js";
import type { Executed } from "../sim-server.js";
import type { Faults } from "./faults.js";
import { type Ambush, type AmbushKind, ambushKinds, type FaultKind, type Scenario } from "./scenario.js";
import { NAMESPACE, type Stage } from "./stage.js";

type Undo = () => void;

/** true: the awaited moment; the watch ends. */
type Sees = (executed: Executed) => boolean;

/** An ambush waits for a moment. */
interface Watch {
  readonly endsAt: number;
  readonly sees: Sees;
}

const FROM_ALL = 1;
const FROM_ONE = 0;
/** The strongest jump of a node's clock, two seconds ahead: it ends every wait. */
const AHEAD = 1;

export class Ambushes {
  /** How many struck. */
  readonly counts = Object.fromEntries(ambushKinds.map((kind) => [kind, 0])) as Record<AmbushKind, number>;
  readonly #stage: Stage;
  readonly #faults: Faults;
  readonly #watches = new Set<Watch>();

  constructor(stage: Stage, faults: Faults) {
    this.#stage = stage;
    this.#faults = faults;
    stage.onExecuted = (executed) => this.#executed(executed);
    const { timeline, scenario } = stage;
    for (const ambush of scenario.ambushes)
      if (ambush.atMs < scenario.stormMs) timeline.at(ambush.atMs, () => lie[ambush.kind](this, ambush));
  }

  get scenario(): Scenario {
    return this.#stage.scenario;
  }

  #executed(executed: Executed): void {
    if (this.#watches.size === 0) return;
    for (const watch of [...this.#watches])
      if (watch.endsAt < this.#stage.timeline.now || watch.sees(executed)) this.#watches.delete(watch);
  }

  log(what: string): void {
    this.#stage.log?.("fault", `ambush ${what}`);
  }

  watch(forMs: number, sees: Sees): void {
    this.#watches.add({ endsAt: this.#stage.timeline.now + forMs, sees });
  }

  after(waitMs: number, run: () => void): void {
    this.#stage.timeline.after(waitMs, run);
  }

  /** At this moment, after the present event. */
  soon(run: () => void): void {
    const { timeline } = this.#stage;
    timeline.at(timeline.now, run);
  }

  inflict(kind: FaultKind, how: Pick<Ambush, "node" | "lastsMs" | "strength"> & { readonly client: number }): Undo | undefined {
    return this.#faults.begin({ kind, atMs: this.#stage.timeline.now, ...how });
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
    const server = this.#stage.machines[node]?.server;
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
function tokenIn(reply: Executed["reply"]): number | undefined {
  const first = Array.isArray(reply) ? reply[1] : reply;
  return typeof first === "number" ? first : undefined;
}

/** The owner in a call's first request for a grant. */
function grantedOwnerIn({ name, args }: Pick<Executed, "name" | "args">): string | undefined {
  return name === "claim" || name === "grant" ? args[1] : undefined;
}

function isAdmission({ name, reply }: Pick<Executed, "name" | "reply">): boolean {
  return name === "admit" && Array.isArray(reply) && reply[0] === "1";
}

/** The index of the process that an owner's secret belongs to: 0 for p1a-17…. */
function clientOf(owner: string | undefined): number | undefined {
  const number = Number(/^p(\d+)/.exec(owner ?? "")?.[1]);
  return number > 0 ? number - 1 : undefined;
}

function indexIn(server: string): number {
  return Number(server.slice(1)) - 1;
}

// Some nodes hear nothing for a while. Then one of the others loses that while, and after it was
// rebuilt the rest are unreachable.
function leftBehind(scene: Ambushes, { node, lastsMs, strength }: Ambush): void {
  const { nodes, ttlMs } = scene.scenario;
  const forgetful = node % nodes;
  const { behind, upToDate } = scene.halvesBut(forgetful);
  scene.log(`left behind: nodes ${behind.map((other) => other + 1)} hear nothing, then n${forgetful + 1} forgets it`);
  scene.silence(behind, lastsMs);
  scene.after(lastsMs, () => {
    if (scene.inflict("lose tail", { node: forgetful, client: 0, lastsMs: 1, strength: 0 }) === undefined) return;
    scene.counts["left behind"]++;
    scene.watch(4 * ttlMs + 1_000, ({ server, name, reply }) => {
      if (indexIn(server.name) !== forgetful || !isAdmission({ name, reply })) return false;
      scene.soon(() => scene.silence(upToDate, 20 + strength * ttlMs));
      return true;
    });
  });
}

// A node forgets, and a locker that is about to admit it again is held back. Another locker admits
// it, the fleet goes on, the node forgets once more; then the belated request arrives.
/** The longest time that the locker is held back. */
const BELATED_WITHIN_MS = 2_500;

function belated(scene: Ambushes, ambush: Ambush): void {
  const node = ambush.node % scene.scenario.nodes;
  if (scene.inflict("flush node", { node, client: 0, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
  scene.watch(BELATED_WITHIN_MS, ({ server, name, args }) => {
    const client = clientOf(args[0]);
    if (name !== "readFloor" || client === undefined || indexIn(server.name) === node) return false;
    scene.soon(() => strikeBelated(scene, ambush, { node, client }));
    return true;
  });
}

function strikeBelated(
  scene: Ambushes,
  { lastsMs, strength }: Ambush,
  { node, client }: { readonly node: number; readonly client: number },
): void {
  const { behind, upToDate } = scene.halvesBut(node);
  scene.log(`belated: p${client + 1} will admit n${node + 1} only after it has forgotten twice`);
  const held = scene.inflict("hold requests", { node, client, lastsMs: BELATED_WITHIN_MS, strength: FROM_ONE });
  scene.hurry(node, BELATED_WITHIN_MS);
  scene.watch(BELATED_WITHIN_MS, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    scene.soon(() => scene.silence(behind, lastsMs));
    scene.after(lastsMs, () => {
      const isFlushed = scene.inflict("flush node", { node, client, lastsMs: 1, strength: FROM_ALL }) !== undefined;
      if (isFlushed) scene.counts.belated++;
      if (isFlushed) scene.silence(upToDate, 20 + strength * scene.scenario.ttlMs);
      held?.();
    });
    return true;
  });
}

// One node has granted and the others have not been reached. It forgets everything and is rebuilt
// from the others; then just enough of them are reached for a quorum.

/** Requests that were held back arrive within this time. */
const ARRIVES_WITHIN_MS = 5;

function halfWay(scene: Ambushes, ambush: Ambush): void {
  scene.watch(ambush.lastsMs, ({ server, name, keys, args, reply }) => {
    const client = clientOf(grantedOwnerIn({ name, args }));
    const token = tokenIn(reply);
    if (token === undefined || client === undefined) return false;
    const node = indexIn(server.name);
    if (!scene.others(node).every((other) => scene.isBehind(other, { lockKey: keys[1] ?? "", token }))) return false;
    scene.soon(() => strikeHalfWay(scene, ambush, { node, client }));
    return true;
  });
}

function strikeHalfWay(
  scene: Ambushes,
  { lastsMs, strength }: Ambush,
  { node, client }: { readonly node: number; readonly client: number },
): void {
  const wiped = scene.inflict(strength < 0.3 ? "wipe node" : "flush node", {
    node,
    client,
    lastsMs: 1,
    strength: FROM_ALL,
  });
  if (wiped === undefined) return;
  scene.log(`half-way: n${node + 1} forgets what it granted p${client + 1}, which the others do not hear of`);
  scene.counts["half-way"]++;
  const { behind, upToDate } = scene.halvesBut(node);
  const hold = (other: number): Undo | undefined => scene.inflict("hold requests", { node: other, client, lastsMs, strength: FROM_ONE });
  const held = upToDate.map(hold);
  for (const other of behind) hold(other);
  scene.hurry(node, lastsMs);
  scene.watch(lastsMs, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    scene.soon(() => {
      for (const release of held) release?.();
      for (const other of behind) scene.inflict("cut", { node: other, client, lastsMs: 1, strength: FROM_ONE });
    });
    scene.after(ARRIVES_WITHIN_MS, () => scene.silence(upToDate, 20 + strength * scene.scenario.ttlMs));
    return true;
  });
}

// A locker was granted different tokens and is about to seal the highest. Its keys run out on the
// nodes that are to seal it, and others are granted the lock there and on the rest, perhaps with
// the same token; then the seal arrives. Needs wild clocks.

/** Others have had the lock within this time. */
const LATE_SEAL_WITHIN_MS = 60;

function lateSeal(scene: Ambushes, ambush: Ambush): void {
  if (scene.scenario.clocks !== "wild") return;
  const byOwner = new Map<string, Map<number, number>>();
  scene.watch(ambush.lastsMs, (executed) => {
    const [owner, token] = [grantedOwnerIn(executed), tokenIn(executed.reply)];
    const client = clientOf(owner);
    if (owner === undefined || token === undefined || client === undefined) return false;
    const tokens = (byOwner.get(owner) ?? new Map<number, number>()).set(indexIn(executed.server.name), token);
    byOwner.set(owner, tokens);
    const highest = Math.max(...tokens.values());
    const behind = [...tokens].flatMap(([node, lower]) => (lower < highest ? [node] : []));
    if (tokens.size !== majority(scene.scenario.nodes) || behind.length === 0) return false;
    const rest = Array.from({ length: scene.scenario.nodes }, (_, node) => node).filter((node) => !tokens.has(node));
    scene.soon(() => strikeLateSeal(scene, ambush, { client, behind, rest }));
    return true;
  });
}

interface Sealing {
  readonly client: number;
  readonly behind: readonly number[];
  readonly rest: readonly number[];
}

function strikeLateSeal(scene: Ambushes, { strength }: Ambush, { client, behind, rest }: Sealing): void {
  scene.log(`late seal: p${client + 1} has no keys any more on ${behind.map((node) => `n${node + 1}`).join(", ")} when it seals there`);
  scene.counts["late seal"]++;
  const hold = (node: number) => scene.inflict("hold requests", { node, client, lastsMs: 2 * LATE_SEAL_WITHIN_MS, strength: FROM_ONE });
  for (const node of rest) hold(node);
  const held = behind.map(hold);
  for (const node of behind) scene.inflict("jump node", { node, client, lastsMs: 1, strength: AHEAD });
  scene.after(1 + strength * LATE_SEAL_WITHIN_MS, () => {
    for (const release of held) release?.();
  });
}

// Nearly all processes stop at one moment, at whatever place in the queues they are, and go on
// much later. Those that run must have what they wait for after one look.

const TIMES_LONGER = 8;
const MOST_RUNNING = 2;

function standingStill(scene: Ambushes, { node, lastsMs }: Ambush): void {
  const running = 1 + (node % MOST_RUNNING);
  scene.log(`standing still: all but ${running} of the processes stop`);
  for (let client = running; client < scene.scenario.clients; client++)
    scene.inflict("stop client", { node, client, lastsMs: TIMES_LONGER * lastsMs, strength: FROM_ONE });
  scene.counts["standing still"]++;
}

// Two lockers are about to found the fleet. One of them has seen some nodes and is held back from
// the last one until the other has founded the fleet, a lease was given, and that node has
// forgotten everything. Then it sees a node that was never admitted, as the others were when it
// looked.

/** A locker that waits longer for an answer looks at all nodes again. */
const FOUNDED_WITHIN_MS = 280;

function twoFounders(scene: Ambushes, ambush: Ambush): void {
  const node = ambush.node % scene.scenario.nodes;
  const hasSeen = new Map<number, Set<number>>();
  let admitted = 0;
  scene.watch(FOUNDED_WITHIN_MS, ({ server, name, args, reply }) => {
    if (isAdmission({ name, reply })) admitted++;
    const client = name === "openAdmission" ? clientOf(args[0]) : undefined;
    if (admitted > 0 || client === undefined) return admitted > 0;
    const seen = hasSeen.get(client) ?? new Set();
    hasSeen.set(client, seen.add(indexIn(server.name)));
    if (seen.has(node)) return false;
    scene.soon(() => strikeTwoFounders(scene, ambush, { node, client }));
    return true;
  });
}

interface Opening {
  readonly node: number;
  readonly client: number;
}

/** Holds back the request that opens the admission of the last node. */
function strikeTwoFounders(scene: Ambushes, ambush: Ambush, opening: Opening): void {
  const held = scene.inflict("hold requests", { ...opening, lastsMs: FOUNDED_WITHIN_MS, strength: FROM_ONE });
  const unfounded = new Set([opening.node, ...scene.others(opening.node)]);
  let isAtWork = false;
  scene.watch(FOUNDED_WITHIN_MS, ({ server, name, reply }) => {
    if (isAdmission({ name, reply })) unfounded.delete(indexIn(server.name));
    if (unfounded.size > 0 || (name !== "grant" && name !== "claim") || tokenIn(reply) === undefined) return false;
    // After the first lease half of the others hear nothing: the next is on this node and the rest.
    if (!isAtWork) scene.soon(() => scene.silence(scene.halvesBut(opening.node).behind, ambush.lastsMs));
    else if (indexIn(server.name) === opening.node) {
      scene.after(1 + ambush.strength * 20, () => forget(scene, ambush, { ...opening, release: () => held?.() }));
      return true;
    }
    isAtWork = true;
    return false;
  });
}

function forget(scene: Ambushes, { strength }: Ambush, { node, client, release }: Opening & { readonly release: () => void }): void {
  if (scene.inflict("flush node", { node, client, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
  scene.log(`two founders: p${client + 1} sees n${node + 1} only after the fleet was founded and n${node + 1} has forgotten it`);
  scene.counts["two founders"]++;
  release();
  scene.watch(FOUNDED_WITHIN_MS, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    scene.soon(() => scene.silence(scene.halvesBut(node).upToDate, 20 + strength * scene.scenario.ttlMs));
    return true;
  });
}

const lie: Readonly<Record<AmbushKind, (scene: Ambushes, ambush: Ambush) => void>> = {
  "half-way": halfWay,
  "left behind": leftBehind,
  belated,
  "two founders": twoFounders,
  "late seal": lateSeal,
  "standing still": standingStill,
};
