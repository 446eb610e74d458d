// Two lockers are about to found the fleet. One of them has seen some nodes, and is held back from seeing the last one until the other has founded it, a lease was given
// there, and that node has forgotten all. Then it sees a node that was never admitted, as the others had been when it looked.
import type { Ambush } from "../scenario.js";
import { clientOf, FROM_ALL, FROM_ONE, type Ground, indexIn, isAdmission, tokenIn } from "./ground.js";

/** Whoever waits longer for an answer looks anew. */
const LATE_WITHIN_MS = 280;

export function twoFounders(ground: Ground, ambush: Ambush): void {
  const node = ambush.node % ground.scenario.nodes;
  const hasSeen = new Map<number, Set<number>>();
  let admitted = 0;
  ground.watch(LATE_WITHIN_MS, ({ server, name, args, reply }) => {
    if (isAdmission({ name, reply })) admitted++;
    const client = name === "openAdmission" ? clientOf(args[0]) : undefined;
    if (admitted > 0 || client === undefined) return admitted > 0;
    const seen = hasSeen.get(client) ?? new Set();
    hasSeen.set(client, seen.add(indexIn(server.name)));
    if (seen.has(node)) return false;
    ground.soon(() => strike(ground, ambush, { node, client }));
    return true;
  });
}

interface Mark {
  readonly node: number;
  readonly client: number;
}

/** The last node to be marked hears nothing of it until its time has come. */
function strike(ground: Ground, ambush: Ambush, mark: Mark): void {
  const held = ground.inflict("hold requests", { ...mark, lastsMs: LATE_WITHIN_MS, strength: FROM_ONE });
  const unfounded = new Set([mark.node, ...ground.others(mark.node)]);
  let isAtWork = false;
  ground.watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
    if (isAdmission({ name, reply })) unfounded.delete(indexIn(server.name));
    if (unfounded.size > 0 || name !== "grant" || tokenIn(reply) === undefined) return false;
    // From the first lease on the others are half deaf; the next one is on this node and on those that hear.
    if (!isAtWork) ground.soon(() => ground.silence(ground.halvesBut(mark.node).behind, ambush.lastsMs));
    else if (indexIn(server.name) === mark.node) {
      ground.after(1 + ambush.strength * 20, () => forget(ground, ambush, { ...mark, release: () => held?.() }));
      return true;
    }
    isAtWork = true;
    return false;
  });
}

function forget(ground: Ground, { strength }: Ambush, { node, client, release }: Mark & { readonly release: () => void }): void {
  if (ground.inflict("flush node", { node, client, lastsMs: 1, strength: FROM_ALL }) === undefined) return;
  ground.tell(`two founders: p${client + 1} sees n${node + 1} only after the fleet was founded and n${node + 1} has forgotten it`);
  ground.counts["two founders"]++;
  release();
  ground.watch(LATE_WITHIN_MS, ({ server, name, reply }) => {
    if (indexIn(server.name) !== node || !isAdmission({ name, reply })) return false;
    ground.soon(() => ground.silence(ground.halvesBut(node).upToDate, 20 + strength * ground.scenario.ttlMs));
    return true;
  });
}
