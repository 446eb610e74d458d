// One node has granted and the others have not been reached. It forgets everything and is rebuilt
// from the others; then just enough of them are reached for a quorum.
import type { Ambush } from "../scenario.js";
import { clientOf, FROM_ALL, FROM_ONE, grantedOwnerIn, indexIn, isAdmission, type Scene, tokenIn, type Undo } from "./scene.js";

/** Requests that were held back arrive within this time. */
const ARRIVES_WITHIN_MS = 5;

export function halfWay(scene: Scene, ambush: Ambush): void {
  scene.watch(ambush.lastsMs, ({ server, name, keys, args, reply }) => {
    const client = clientOf(grantedOwnerIn({ name, args }));
    const token = tokenIn(reply);
    if (token === undefined || client === undefined) return false;
    const node = indexIn(server.name);
    if (!scene.others(node).every((other) => scene.isBehind(other, { lockKey: keys[1] ?? "", token }))) return false;
    scene.soon(() => strike(scene, ambush, { node, client }));
    return true;
  });
}

function strike(scene: Scene, { lastsMs, strength }: Ambush, { node, client }: { readonly node: number; readonly client: number }): void {
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
