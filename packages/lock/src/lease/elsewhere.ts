// Of one of several fleets: does it serve these resources now? Asked in the same step in which its
// nodes are asked, since an answer counts only in the generation of members that was known then,
// and with the generation the list of fleets changes (F1).
import type { Unreachable } from "../protocol/ballot.js";
import type { LeaseContext } from "./context.js";

export function checkHere({ elsewhere }: Pick<LeaseContext, "elsewhere">, resources: readonly string[]): void {
  const why = elsewhere?.(resources);
  if (why !== undefined) throw why;
}

// Why the nodes were not asked to renew a lease, for the message of its loss. Beside the leases: of
// ten thousand hardly any has such a reason.
const whys = new WeakMap<object, string>();

export function notAsked(nodes: readonly { readonly name: string }[], why: string): readonly Unreachable[] {
  const ballots = nodes.map(({ name }): Unreachable => ({ kind: "unreachable", node: name, cause: why, unsent: true }));
  whys.set(ballots, why);
  return ballots;
}

/** These are the answers to its last renewal. */
export function noteAnswers(lease: object, ballots: object): void {
  const why = whys.get(ballots);
  if (why === undefined) whys.delete(lease);
  else whys.set(lease, why);
}

/** undefined: the nodes were asked, or nobody has wanted to. */
export function whyNotAsked(lease: object): string | undefined {
  return whys.get(lease);
}
