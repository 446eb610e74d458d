// A node forgets, and a locker that is about to admit it again is held back. Another locker admits
// it, the fleet goes on, the node forgets once more; then the belated request arrives.
import type { Ambush } from "../scenario.js";
import { clientOf, FROM_ALL, FROM_ONE, indexIn, isAdmission, type Scene } from "./scene.js";

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
