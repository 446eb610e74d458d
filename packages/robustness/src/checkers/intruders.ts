// G2: what is no token changes nothing. G4: a token that the lock never issued moves no fence.
import type { History } from "../history/history.js";
import { groupedBy, type Violation } from "../history/records.js";
import { described } from "./stored-writes.js";

export function acceptedIntruders({ operations, leases, entries, finals, strangeFences }: History): Violation[] {
  const accepted = operations.flatMap((operation): Violation[] => {
    if (operation.outcome !== "done" || (operation.kind !== "forged" && operation.kind !== "malformed")) return [];
    const promise = operation.kind === "forged" ? "G4" : "G2";
    return [
      { promise, at: operation.sentAt, resource: operation.resource, what: `${operation.resource}: ${described(operation)} was accepted` },
    ];
  });
  const issued = new Map(
    [...groupedBy(leases, ({ resource }) => resource)].map(([name, own]) => [name, new Set(own.map(({ token }) => token))]),
  );
  const isIssued = (resource: string, token: number): boolean => issued.get(resource)?.has(token) === true;
  const stored = entries.filter(({ resource, token }) => !isIssued(resource, token));
  const fences = [...finals, ...strangeFences].filter(({ resource, token }) => token !== undefined && !isIssued(resource, token));
  return [
    ...accepted,
    ...stored.map(
      ({ resource, rev, token }): Violation => ({
        promise: "G4",
        resource,
        what: `${resource}: revision ${rev} has token ${token}, which no holder was ever given`,
      }),
    ),
    ...fences.map(
      ({ resource, token }): Violation => ({
        promise: "G4",
        resource,
        what: `${resource}: the fence is ${token}, which no holder was ever given`,
      }),
    ),
  ];
}
