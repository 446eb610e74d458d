// G1: an answer with a token keeps out every lower token, by the order of revisions and by the
// clock; and a call is stale only where a newer token exists.
import { groupedBy, highestBefore, type LeaseRecord, type Operation, type Violation } from "../history/records.js";
import { described, isWrite, type StoredWrites } from "./stored-writes.js";

export function brokenFences(resources: readonly StoredWrites[], leases: readonly LeaseRecord[]): Violation[] {
  const leasesOf = groupedBy(leases, ({ resource }) => resource);
  return resources.flatMap((resource) => {
    const found = [...byRevision(resource), ...byTime(resource), ...groundless(resource, leasesOf.get(resource.name) ?? [])];
    return found.map(({ operation, what }): Violation => {
      const { name } = resource;
      return { promise: "G1", resource: name, at: operation.sentAt, what: `${name}: ${described(operation)} ${what}` };
    });
  });
}

interface Found {
  readonly operation: Operation;
  readonly what: string;
}

/** After a write or seal answered with success, only its token or higher ones are stored. */
function byRevision({ operations, kept }: StoredWrites): Found[] {
  const writes = kept.map(({ entry, operation }) => ({ rev: entry.rev, token: entry.token, operation }));
  const seals = operations.flatMap((operation) => {
    const { kind, outcome, rev, token } = operation;
    return kind === "seal" && outcome === "done" && rev !== undefined && token !== undefined ? [{ rev, token, operation }] : [];
  });
  const raises = [...writes, ...seals].sort((a, b) => a.rev - b.rev);
  const highest = highestBefore(raises, kept, { isBefore: (raise, { entry }) => raise.rev < entry.rev, height: ({ token }) => token });
  return kept.flatMap(({ entry, operation }, i): Found[] => {
    const raise = highest[i];
    if (raise === undefined || entry.token >= raise.token) return [];
    return [{ operation, what: `became revision ${entry.rev}, after ${described(raise.operation)} at revision ${raise.rev}` }];
  });
}

/** What was sent after a higher token had been answered with success is not accepted. */
function byTime({ operations }: StoredWrites): Found[] {
  const done = operations.filter(({ outcome, token, kind }) => outcome === "done" && token !== undefined && kind !== "get");
  const byAnswer = [...done].sort((a, b) => a.answeredAt - b.answeredAt);
  const bySending = [...done].sort((a, b) => a.sentAt - b.sentAt);
  const highest = highestBefore(byAnswer, bySending, { isBefore: (a, b) => a.answeredAt < b.sentAt, height: tokenOf });
  return bySending.flatMap((operation, i): Found[] => {
    const earlier = highest[i];
    if (earlier === undefined || tokenOf(operation) >= tokenOf(earlier)) return [];
    return [{ operation, what: `was accepted, although ${described(earlier)} had been answered before it was sent` }];
  });
}

/** A stale answer needs a lease with a higher token; in a transaction, another part may have it. */
function groundless({ operations }: StoredWrites, leases: readonly LeaseRecord[]): Found[] {
  const byBeginning = [...leases].sort((a, b) => a.beganAt - b.beganAt);
  const stale = operations
    .filter(({ code, group }) => code === "fencing_token_stale" && group === undefined)
    .filter((operation) => isWrite(operation) || operation.kind === "seal")
    .sort((a, b) => a.answeredAt - b.answeredAt);
  const highest = highestBefore(byBeginning, stale, { isBefore: (a, b) => a.beganAt < b.answeredAt, height: ({ token }) => token });
  return stale.flatMap((operation, i) =>
    (highest[i]?.token ?? 0) > tokenOf(operation) ? [] : [{ operation, what: "is stale, and there was no newer token" }],
  );
}

function tokenOf({ token }: Operation): number {
  return token ?? 0;
}
