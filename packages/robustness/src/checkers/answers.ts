// G3: an answer can be believed. done: stored exactly once, as told. refused: not stored. unknown:
// stored at most once. The writes of a transaction are all stored or none.
import { groupedBy, type Violation } from "../history/records.js";
import { described, isWrite, type StoredWrites } from "./stored-writes.js";

export function unbelievableAnswers(resources: readonly StoredWrites[]): Violation[] {
  return [...resources.flatMap((resource) => [...resource.strays, ...answersOf(resource)]), ...halfTransactions(resources)];
}

function answersOf({ name, operations, keptById }: StoredWrites): Violation[] {
  return operations.filter(isWrite).flatMap((operation): Violation[] => {
    const kept = keptById.get(operation.id) ?? [];
    const wrong = (how: string): Violation[] => [
      { promise: "G3", resource: name, at: operation.sentAt, what: `${name}: ${described(operation)} ${how}` },
    ];
    if (kept.length > 1) return wrong(`is stored ${kept.length} times, as revisions ${kept.map(({ entry }) => entry.rev).join(", ")}`);
    const rev = kept[0]?.entry.rev;
    if (operation.outcome === "done" && rev === undefined) return wrong("was answered with success and is not stored");
    if (operation.outcome === "done" && operation.rev !== rev) return wrong(`was told to be revision ${operation.rev} and is ${rev}`);
    if (operation.outcome === "refused" && rev !== undefined) return wrong(`was refused and is stored as revision ${rev}`);
    return [];
  });
}

function halfTransactions(resources: readonly StoredWrites[]): Violation[] {
  const parts = resources.flatMap(({ operations, keptById }) =>
    operations
      .filter(({ group }) => group !== undefined)
      .map((operation) => ({ group: operation.group, operation, isKept: keptById.has(operation.id) })),
  );
  return [...groupedBy(parts, ({ group }) => group).values()].flatMap((members): Violation[] => {
    if (members.every(({ isKept }) => isKept) || !members.some(({ isKept }) => isKept)) return [];
    const [first] = members;
    const list = members.map(({ operation, isKept }) => `${operation.resource} ${isKept ? "stored" : "not stored"}`).join(", ");
    return [{ promise: "G3", at: first?.operation.sentAt ?? 0, what: `half a transaction ${first?.group}: ${list}` }];
  });
}
