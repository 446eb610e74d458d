// Some nodes hear nothing for a while; then one of those that did loses just that while, and after it was rebuilt nobody hears from the rest.
import type { Ambush } from "../scenario.js";
import { type Ground, indexIn, isAdmission } from "./ground.js";

export function leftBehind(ground: Ground, { node, lastsMs, strength }: Ambush): void {
  const { nodes, ttlMs } = ground.scenario;
  const forgetful = node % nodes;
  const { behind, upToDate } = ground.halvesBut(forgetful);
  ground.tell(`left behind: nodes ${behind.map((other) => other + 1)} hear nothing, then n${forgetful + 1} forgets it`);
  ground.silence(behind, lastsMs);
  ground.after(lastsMs, () => {
    if (ground.inflict("lose tail", { node: forgetful, client: 0, lastsMs: 1, strength: 0 }) === undefined) return;
    ground.counts["left behind"]++;
    ground.watch(4 * ttlMs + 1_000, ({ server, name, reply }) => {
      if (indexIn(server.name) !== forgetful || !isAdmission({ name, reply })) return false;
      ground.soon(() => ground.silence(upToDate, 20 + strength * ttlMs));
      return true;
    });
  });
}
