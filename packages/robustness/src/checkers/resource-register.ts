// One resource as a register that is read and modified, for the linearizability checker. It goes by
// the answers and by the names in the documents; revisions only bound when a write without an
// answer must have happened.
import type { Operation, Violation } from "../history/records.js";
import { type Interval, linearizability, type Model } from "./linearizability.js";
import { described, isWrite, type Kept, type StoredWrites } from "./stored-writes.js";
import { isFleeting } from "./updates.js";

export interface RegisterOperation extends Interval {
  readonly name: string;
  /** The writer of what must be there when it happens. */
  readonly expects: string | null;
  /** What is there afterwards; undefined for a read. */
  readonly makes: string | null | undefined;
}

export const register: Model<string | null, RegisterOperation> = {
  initial: null,
  step: (state, { expects, makes }) => (state === expects ? { state: makes === undefined ? state : makes } : undefined),
  key: (state) => state ?? "",
};

export function unlinearizable(resources: readonly StoredWrites[]): Violation[] {
  return resources.flatMap((resource): Violation[] => {
    const judgement = linearizability(registerOperations(resource), register);
    if (judgement.linearizable) return [];
    const stuck = judgement.stuck.map(({ name, expects }) => `${name} needs ${expects ?? "no document"}`).join("; ");
    const at = judgement.stuck[0]?.fromAt;
    const what = `${resource.name}: no order of the operations explains the answers; after ${judgement.told} of them: ${stuck}`;
    return [{ promise: "order", resource: resource.name, what, ...(at === undefined ? {} : { at }) }];
  });
}

/** Reads that were answered, and writes that took effect. */
export function registerOperations({ operations, kept, keptById }: StoredWrites): RegisterOperation[] {
  const knownAt = firstKnown(operations, kept);
  return operations.flatMap((operation): RegisterOperation[] => {
    const { kind, outcome, document, on, id, sentAt, answeredAt } = operation;
    if (kind === "get" || kind === "seal") {
      if (outcome !== "done" || document === undefined || isFleeting(operation, keptById)) return [];
      return [{ name: described(operation), fromAt: sentAt, untilAt: answeredAt, expects: document?.by ?? null, makes: undefined }];
    }
    const place = keptById.get(id)?.[0]?.entry;
    if (!isWrite(operation) || place === undefined || on === undefined) return [];
    const untilAt = outcome === "done" ? answeredAt : (knownAt.get(place.rev) ?? Number.POSITIVE_INFINITY);
    return [{ name: described(operation), fromAt: sentAt, untilAt, expects: on.by, makes: kind === "delete" ? null : id }];
  });
}

/** When any client was first told of this revision or of a later one. */
function firstKnown(operations: readonly Operation[], kept: readonly Kept[]): Map<number, number> {
  const toldAt = new Map<number, number>();
  for (const { outcome, rev, answeredAt } of operations)
    if (outcome === "done" && rev !== undefined) toldAt.set(rev, Math.min(toldAt.get(rev) ?? Number.POSITIVE_INFINITY, answeredAt));
  const known = new Map<number, number>();
  let earliest = Number.POSITIVE_INFINITY;
  for (const { entry } of [...kept].reverse()) {
    earliest = Math.min(earliest, toldAt.get(entry.rev) ?? Number.POSITIVE_INFINITY);
    known.set(entry.rev, earliest);
  }
  return known;
}
