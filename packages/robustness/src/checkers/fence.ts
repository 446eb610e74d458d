// G1: what was answered with a token keeps out everything below it, by the order of revisions and by the clock. And nobody is called stale without a newer token.
import type { Violation } from "../history/lease-record.js";
import { groupedBy, type Operation, type ResourceTenure } from "../profiles/system/history.js";
import { isWrite, type Resource, told } from "./settled.js";

export function brokenFences(resources: readonly Resource[], tenures: readonly ResourceTenure[]): Violation[] {
  const leases = groupedBy(tenures, ({ resource }) => resource);
  return resources.flatMap((resource) => {
    return [...byRevision(resource), ...byTime(resource), ...groundless(resource, leases.get(resource.name) ?? [])];
  });
}

/** Behind every write and seal that was answered with success, only its token or higher ones. */
function byRevision({ name, operations, kept }: Resource): Violation[] {
  const raises = [
    ...kept.map(({ entry, operation }) => ({ rev: entry.rev, token: entry.token, operation })),
    ...operations.flatMap((operation) => {
      const { kind, outcome, rev, token } = operation;
      return kind === "seal" && outcome === "done" && rev !== undefined && token !== undefined ? [{ rev, token, operation }] : [];
    }),
  ].sort((a, b) => a.rev - b.rev);
  const found: Violation[] = [];
  let next = 0;
  let highest: (typeof raises)[number] | undefined;
  for (const { entry, operation } of kept) {
    for (let raise = raises[next]; raise !== undefined && raise.rev < entry.rev; raise = raises[++next])
      if (highest === undefined || raise.token > highest.token) highest = raise;
    if (highest !== undefined && entry.token < highest.token)
      found.push({
        promise: "G1",
        resource: name,
        at: operation.sentAt,
        what: `${name}: ${told(operation)} became revision ${entry.rev}, after ${told(highest.operation)} at revision ${highest.rev}`,
      });
  }
  return found;
}

/** What was sent after a higher token had been answered with success is not accepted. */
function byTime({ name, operations }: Resource): Violation[] {
  const done = operations.filter(({ outcome, token, kind }) => outcome === "done" && token !== undefined && kind !== "get");
  const byAnswer = [...done].sort((a, b) => a.answeredAt - b.answeredAt);
  const bySending = [...done].sort((a, b) => a.sentAt - b.sentAt);
  const found: Violation[] = [];
  let next = 0;
  let highest: Operation | undefined;
  for (const later of bySending) {
    for (let earlier = byAnswer[next]; earlier !== undefined && earlier.answeredAt < later.sentAt; earlier = byAnswer[++next])
      if (highest === undefined || tokenOf(earlier) > tokenOf(highest)) highest = earlier;
    if (highest !== undefined && tokenOf(later) < tokenOf(highest))
      found.push({
        promise: "G1",
        resource: name,
        at: later.sentAt,
        what: `${name}: ${told(later)} was accepted, although ${told(highest)} had been answered before it was sent`,
      });
  }
  return found;
}

/** There must have been a lease with a higher token, at least. (Of a transaction it may have been another part that was stale.) */
function groundless({ name, operations }: Resource, tenures: readonly ResourceTenure[]): Violation[] {
  const byBeginning = [...tenures].sort((a, b) => a.beganAt - b.beganAt);
  const stale = operations
    .filter(
      (operation) =>
        operation.code === "fencing_token_stale" && operation.group === undefined && (isWrite(operation) || operation.kind === "seal"),
    )
    .sort((a, b) => a.answeredAt - b.answeredAt);
  let next = 0;
  let highest = 0;
  return stale.flatMap((operation): Violation[] => {
    for (let lease = byBeginning[next]; lease !== undefined && lease.beganAt < operation.answeredAt; lease = byBeginning[++next])
      highest = Math.max(highest, lease.token);
    if (highest > tokenOf(operation)) return [];
    return [{ promise: "G1", resource: name, at: operation.sentAt, what: `${name}: ${told(operation)}, and there was no newer token` }];
  });
}

function tokenOf({ token }: Operation): number {
  return token ?? 0;
}
