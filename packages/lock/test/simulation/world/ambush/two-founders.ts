// Two lockers are about to found the fleet. One of them has seen some nodes and is held back from
// the last one until the other has founded the fleet, a lease was given, and that node has
// forgotten everything. Then it sees a node that was never admitted, as the others were when it
// looked.
import type { Ambush } from "../scenario.js";
import { clientOf, FROM_ALL, FROM_ONE, indexIn, isAdmission, type Scene, tokenIn } from "./scene.js";

/** A locker that waits longer for an answer looks at all nodes again. */
const LATE_WITHIN_MS = 280;

export function twoFounders(scene: Scene, ambush: Ambush): void {
  const node = ambush.node % scene.scenario.nodes;
  const hasSeen = new Map<number, Set<number>>();
  let admitted = 0;
  scene.watch(LATE_WITHIN_MS, ({ server, name, args, reply }) => {
    if (isAdmission({ name, reply })) admitted++;
    const client = name === "openAdmission" ? clientOf(args[0]) : undefined;
    if (admitted > 0 || client === undefined) return admitted > 0;
    const seen = hasSeen.get(client) ?? new Set();
    hasSeen.set(client, seen.add(indexIn(server.name)));
    if (seen.has(node)) return false;
    scene.soon(() => strike(scene, ambush, { node, client }));
    return true;
  });
}

interface Opening {
  readonly node: number;
  readonly client: number;
}

/** Holds back the request that opens the admission of the last node. */
function strike(scene: Scene, ambush: Ambush, opening: Opening): void {
  const held = scene.inflict("hold requests", { ...opening, lastsMs: LATE_WITHIN_MS, strength: FROM_ONE });
  const unfounded = new Set([opening.node, ...scene.others(opening.node)]);
  let isAtWork = false;
  scene.watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
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

function forget(scene: Scene, { strength }: Ambush, { node, client, release }: Opening & { readonly release: () => void }): void {
  if (scene.inflict("flush node", { node, client, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
  scene.log(`two founders: p${client + 1} sees n${node + 1} only after the fleet was founded and n${node + 1} has forgotten it`);
  scene.counts["two founders"]++;
  release();
  scene.watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    scene.soon(() => scene.silence(scene.halvesBut(node).upToDate, 20 + strength * scene.scenario.ttlMs));
    return true;
  });
}
