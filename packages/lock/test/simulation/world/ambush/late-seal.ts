// A locker was granted different tokens and is about to seal the highest. Its keys run out on the
// nodes that are to seal it, and others are granted the lock there and on the rest, perhaps with
// the same token; then the seal arrives. Needs wild clocks.
import { majority } from "#lock/quorum.js";
import type { Ambush } from "../scenario.js";
import { AHEAD, clientOf, FROM_ONE, grantedOwnerIn, indexIn, type Scene, tokenIn } from "./scene.js";

/** Others have had the lock within this time. */
const LATE_WITHIN_MS = 60;

export function lateSeal(scene: Scene, ambush: Ambush): void {
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
    scene.soon(() => strike(scene, ambush, { client, behind, rest }));
    return true;
  });
}

interface Sealing {
  readonly client: number;
  readonly behind: readonly number[];
  readonly rest: readonly number[];
}

function strike(scene: Scene, { strength }: Ambush, { client, behind, rest }: Sealing): void {
  scene.log(`late seal: p${client + 1} has no keys any more on ${behind.map((node) => `n${node + 1}`).join(", ")} when it seals there`);
  scene.counts["late seal"]++;
  const hold = (node: number) => scene.inflict("hold requests", { node, client, lastsMs: 2 * LATE_WITHIN_MS, strength: FROM_ONE });
  for (const node of rest) hold(node);
  const held = behind.map(hold);
  for (const node of behind) scene.inflict("jump node", { node, client, lastsMs: 1, strength: AHEAD });
  scene.after(1 + strength * LATE_WITHIN_MS, () => {
    for (const release of held) release?.();
  });
}
