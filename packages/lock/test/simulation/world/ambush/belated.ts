// A node forgets, and somebody who is about to believe it again, as the fleet was, is held back. Somebody else does it, the fleet goes on, the node forgets once more; and
// then the belated one comes.
import type { Ambush } from "../scenario.js";
import { clientOf, FROM_ALL, FROM_ONE, type Ground, indexIn, isAdmission } from "./ground.js";

/** So long somebody is held back at most. */
const LATE_WITHIN_MS = 2_500;

export function belated(ground: Ground, ambush: Ambush): void {
  const node = ambush.node % ground.scenario.nodes;
  if (ground.inflict("flush node", { node, client: 0, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
  ground.watch(LATE_WITHIN_MS, ({ server, name, args }) => {
    const client = clientOf(args[0]);
    if (name !== "readFloor" || client === undefined || indexIn(server.name) === node) return false;
    ground.soon(() => strike(ground, ambush, { node, client }));
    return true;
  });
}

function strike(ground: Ground, { lastsMs, strength }: Ambush, { node, client }: { readonly node: number; readonly client: number }): void {
  const { behind, upToDate } = ground.halvesBut(node);
  ground.tell(`belated: p${client + 1} will admit n${node + 1} only after it has forgotten twice`);
  const held = ground.inflict("hold requests", { node, client, lastsMs: LATE_WITHIN_MS, strength: FROM_ONE });
  ground.hurry(node, LATE_WITHIN_MS);
  ground.watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    ground.soon(() => ground.silence(behind, lastsMs));
    ground.after(lastsMs, () => {
      const isFlushed = ground.inflict("flush node", { node, client, lastsMs: 1, strength: FROM_ALL }) !== undefined;
      if (isFlushed) ground.counts.belated++;
      if (isFlushed) ground.silence(upToDate, 20 + strength * ground.scenario.ttlMs);
      held?.();
    });
    return true;
  });
}
