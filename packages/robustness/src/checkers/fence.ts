// G1: an answer with a token keeps out every lower token, by the order of revisions and by the
// clock; and a call is stale only where a newer token exists.
import { groupedBy, type LeaseRecord, type Operation } from "../history/records.js";
import { described, isWrite, type StoredWrites } from "./stored-writes.js";
import type { Violation } from "./violation.js";

export function brokenFences(resources: readonly StoredWrites[], leases: readonly LeaseRecord[]): Violation[] {
  const leasesOf = groupedBy(leases, ({ resource }) => resource);
  return resources.flatMap((resource) => {
    return [...byRevision(resource), ...byTime(resource), ...groundless(resource, leasesOf.get(resource.name) ?? [])];
  });
}

/**
 * After every write and seal that was answered with success, only its token or higher ones are
 * stored.
 */
function byRevision({ name, operations, kept }: StoredWrites): Violation[] {
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
        what: `${name}: ${described(operation)} became revision ${entry.rev}, after ${described(highest.operation)} at revision ${highest.rev}`,
      });
  }
  return found;
}

/** What was sent after a higher token had been answered with success is not accepted. */
function byTime({ name, operations }: StoredWrites): Violation[] {
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
        what: `${name}: ${described(later)} was accepted, although ${described(highest)} had been answered before it was sent`,
      });
  }
  return found;
}

/**
 * A stale answer needs a lease with a higher token. (In a transaction another part may have been
 * the stale one.)
 */
function groundless({ name, operations }: StoredWrites, leases: readonly LeaseRecord[]): Violation[] {
  const byBeginning = [...leases].sort((a, b) => a.beganAt - b.beganAt);
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
    return [
      { promise: "G1", resource: name, at: operation.sentAt, what: `${name}: ${described(operation)}, and there was no newer token` },
    ];
  });
}

function tokenOf({ token }: Operation): number {
  return token ?? 0;
}
