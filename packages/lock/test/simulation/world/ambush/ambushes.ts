// Several faults at once, at the worst moment. A rule that matters only when rare events coincide
// is hardly ever hurt by chance; an ambush waits for the moment. It uses the ordinary faults.
import type { Executed } from "../../server/sim-server.js";
import type { Ambush, AmbushKind } from "../scenario.js";
import { halfWay } from "./half-way.js";
import { lateSeal } from "./late-seal.js";
import { clientOf, FROM_ALL, FROM_ONE, indexIn, isAdmission, Scene, type SceneSettings } from "./scene.js";
import { standingStill } from "./standing-still.js";
import { twoFounders } from "./two-founders.js";

const lie: Readonly<Record<AmbushKind, (scene: Scene, ambush: Ambush) => void>> = {
  "half-way": halfWay,
  "left behind": leftBehind,
  belated,
  "two founders": twoFounders,
  "late seal": lateSeal,
  "standing still": standingStill,
};

export class Ambushes {
  readonly #scene: Scene;

  constructor(settings: SceneSettings) {
    this.#scene = new Scene(settings);
    const { timeline, scenario } = settings;
    for (const ambush of scenario.ambushes)
      if (ambush.atMs < scenario.stormMs) timeline.at(ambush.atMs, () => lie[ambush.kind](this.#scene, ambush));
  }

  /** How many struck. */
  get counts(): Readonly<Record<AmbushKind, number>> {
    return this.#scene.counts;
  }

  /** Called after every script, before its answer is sent. */
  executed(executed: Executed): void {
    this.#scene.executed(executed);
  }
}

// Some nodes hear nothing for a while. Then one of the others loses that while, and after it was
// rebuilt the rest are unreachable.
export function leftBehind(scene: Scene, { node, lastsMs, strength }: Ambush): void {
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
const LATE_WITHIN_MS = 2_500;

export function belated(scene: Scene, ambush: Ambush): void {
  const node = ambush.node % scene.scenario.nodes;
  if (scene.inflict("flush node", { node, client: 0, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
  scene.watch(LATE_WITHIN_MS, ({ server, name, args }) => {
    const client = clientOf(args[0]);
    if (name !== "readFloor" || client === undefined || indexIn(server.name) === node) return false;
    scene.soon(() => strike(scene, ambush, { node, client }));
    return true;
  });
}

function strike(scene: Scene, { lastsMs, strength }: Ambush, { node, client }: { readonly node: number; readonly client: number }): void {
  const { behind, upToDate } = scene.halvesBut(node);
  scene.log(`belated: p${client + 1} will admit n${node + 1} only after it has forgotten twice`);
  const held = scene.inflict("hold requests", { node, client, lastsMs: LATE_WITHIN_MS, strength: FROM_ONE });
  scene.hurry(node, LATE_WITHIN_MS);
  scene.watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
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
