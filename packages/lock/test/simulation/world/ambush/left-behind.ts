// Some nodes hear nothing for a while. Then one of the others loses that while, and after it was
// rebuilt the rest are unreachable.
import type { Ambush } from "../scenario.js";
import { indexIn, isAdmission, type Scene } from "./scene.js";

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
