// Of one of several fleets: does it serve these resources now? Asked in the same step in which its
// nodes are asked, since an answer counts only in the generation of members that was known then,
// and with the generation the list of fleets changes (F1).
import type { LeaseContext } from "./context.js";

export function checkHere({ elsewhere }: Pick<LeaseContext, "elsewhere">, resources: readonly string[]): void {
  const why = elsewhere?.(resources);
  if (why !== undefined) throw why;
}
