// One node has granted, the others have not been reached: the one forgets it all, and is rebuilt from the others, and then just enough of them are reached, and no more.
import type { Ambush } from "../scenario.js";
import { clientOf, FROM_ALL, FROM_ONE, type Ground, indexIn, isAdmission, tokenIn, type Undo } from "./ground.js";

/** What was held and goes on has arrived by then. */
const ARRIVES_WITHIN_MS = 5;

export function halfWay(ground: Ground, ambush: Ambush): void {
  ground.watch(ambush.lastsMs, ({ server, name, keys, args, reply }) => {
    const token = name === "grant" ? tokenIn(reply) : undefined;
    const client = clientOf(args[1]);
    if (token === undefined || client === undefined) return false;
    const node = indexIn(server.name);
    if (!ground.others(node).every((other) => ground.isBehind(other, { lockKey: keys[1] ?? "", token }))) return false;
    ground.soon(() => strike(ground, ambush, { node, client }));
    return true;
  });
}

function strike(ground: Ground, { lastsMs, strength }: Ambush, { node, client }: { readonly node: number; readonly client: number }): void {
  const wiped = ground.inflict(strength < 0.3 ? "wipe node" : "flush node", { node, client, lastsMs: 1, strength: FROM_ALL });
  if (wiped === undefined) return;
  ground.tell(`half-way: n${node + 1} forgets what it granted p${client + 1}, which the others do not hear of`);
  ground.counts["half-way"]++;
  const { behind, upToDate } = ground.halvesBut(node);
  const hold = (other: number): Undo | undefined => ground.inflict("hold requests", { node: other, client, lastsMs, strength: FROM_ONE });
  const held = upToDate.map(hold);
  for (const other of behind) hold(other);
  ground.hurry(node, lastsMs);
  ground.watch(lastsMs, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    ground.soon(() => {
      for (const release of held) release?.();
      for (const other of behind) ground.inflict("cut", { node: other, client, lastsMs: 1, strength: FROM_ONE });
    });
    ground.after(ARRIVES_WITHIN_MS, () => ground.silence(upToDate, 20 + strength * ground.scenario.ttlMs));
    return true;
  });
}
