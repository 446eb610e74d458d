// No update is lost: every stored write was made from exactly what was stored before it, the
// revisions have no gaps, the last document is what all of them together make, and every read
// showed a stored revision.
import type { Final } from "../history/history.js";
import { type Document, type Operation, successor, type Violation } from "../history/records.js";
import { described, type StoredWrites } from "./stored-writes.js";

export function lostUpdates(resources: readonly StoredWrites[], finals: readonly Final[]): Violation[] {
  return resources.flatMap((resource) => {
    const versions: Version[] = [{ rev: 0, document: null }];
    const found = [...chain(resource, versions), ...reads(resource, versions)];
    const final = finals.find(({ resource: name }) => name === resource.name);
    const last = versions.at(-1);
    if (final !== undefined && (final.rev !== last?.rev || !isSame(final.document, last.document)))
      found.push({
        promise: "G3",
        resource: resource.name,
        what: `${resource.name} is ${JSON.stringify(final)} at the end, and its history makes ${JSON.stringify(last)}`,
      });
    return found;
  });
}

interface Version {
  readonly rev: number;
  readonly document: Document | null;
}

/** Fills in what each revision was. */
function chain({ name, kept }: StoredWrites, versions: Version[]): Violation[] {
  const found: Violation[] = [];
  for (const { entry, operation } of kept) {
    const before = versions.at(-1) as Version;
    const wrong = (what: string, lostUpdates = 0): void => {
      const lost = lostUpdates > 0 ? { lostUpdates } : {};
      found.push({ promise: "G3", resource: name, at: operation.sentAt, what: `${name}: ${what}`, ...lost });
    };
    if (entry.rev !== before.rev + 1) wrong(`revision ${entry.rev} follows ${before.rev}`);
    else if (operation.on !== undefined && operation.on.rev !== before.rev) {
      const { rev } = operation.on;
      const lost = before.rev - rev;
      const howMany = lost === 1 ? "1 update is" : `${lost} updates are`;
      wrong(`${described(operation)} was made from revision ${rev} and stored over ${before.rev}: ${howMany} lost`, lost);
    }
    versions.push({ rev: entry.rev, document: entry.op === "delete" ? null : successor(versionOn(versions, operation), operation.id) });
  }
  return found;
}

/** What the writer had read: the document before, unless an update was lost. */
function versionOn(versions: readonly Version[], { on }: Operation): Document | null {
  return (on === undefined ? versions.at(-1) : versions[on.rev])?.document ?? null;
}

function reads({ name, operations, keptById }: StoredWrites, versions: readonly Version[]): Violation[] {
  return operations.flatMap((operation): Violation[] => {
    const { kind, outcome, rev, document } = operation;
    if ((kind !== "get" && kind !== "seal") || outcome !== "done" || rev === undefined || document === undefined) return [];
    if (isSame(versions[rev]?.document ?? null, document)) return [];
    if (isFleeting(operation, keptById)) return [];
    const shown = `showed ${JSON.stringify(document)} as revision ${rev}, which is ${JSON.stringify(versions[rev])}`;
    return [{ promise: "G3", resource: name, at: operation.sentAt, what: `${name}: ${described(operation)} ${shown}` }];
  });
}

/** A plain read may show a write that a failover undid. A seal may not: it is a write itself. */
export function isFleeting({ kind, document }: Operation, keptById: StoredWrites["keptById"]): boolean {
  return kind === "get" && document != null && !keptById.has(document.by);
}

function isSame(a: Document | null, b: Document | null): boolean {
  return a?.n === b?.n && a?.by === b?.by && a?.chain === b?.chain;
}
