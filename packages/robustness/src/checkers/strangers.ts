// G2: what is no token changes nothing. G4: a token that the lock never issued moves no fence.
import type { Violation } from "../history/lease-record.js";
import { groupedBy, type SystemHistory } from "../profiles/system/history.js";
import { told } from "./settled.js";

export function strangers({ operations, tenures, entries, finals, strangeFences }: SystemHistory): Violation[] {
  const accepted = operations.flatMap((operation): Violation[] => {
    if (operation.outcome !== "done" || (operation.kind !== "forged" && operation.kind !== "malformed")) return [];
    const promise = operation.kind === "forged" ? "G4" : "G2";
    return [
      { promise, at: operation.sentAt, resource: operation.resource, what: `${operation.resource}: ${told(operation)} was accepted` },
    ];
  });
  const issued = new Map(
    [...groupedBy(tenures, ({ resource }) => resource)].map(([name, leases]) => [name, new Set(leases.map(({ token }) => token))]),
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
