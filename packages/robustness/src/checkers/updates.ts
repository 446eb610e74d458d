// No update is lost: every write that is stored was made from exactly what was stored before it, the revisions have no gaps, the last document is what all of them
// together make, and every read showed what was there.
import type { Violation } from "../history/lease-record.js";
import { type Document, successor } from "../profiles/system/document.js";
import type { Final, Operation } from "../profiles/system/history.js";
import { type Resource, told } from "./settled.js";

export function lostUpdates(resources: readonly Resource[], finals: readonly Final[]): Violation[] {
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
function chain({ name, kept }: Resource, versions: Version[]): Violation[] {
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
      wrong(`${told(operation)} was made from revision ${rev} and stored over ${before.rev}: ${howMany} lost`, lost);
    }
    versions.push({ rev: entry.rev, document: entry.op === "delete" ? null : successor(versionOn(versions, operation), operation.id) });
  }
  return found;
}

/** The writer made the new one from what it had read, which is the one before unless something was lost. */
function versionOn(versions: readonly Version[], { on }: Operation): Document | null {
  return (on === undefined ? versions.at(-1) : versions[on.rev])?.document ?? null;
}

function reads({ name, operations, keptById }: Resource, versions: readonly Version[]): Violation[] {
  return operations.flatMap((operation): Violation[] => {
    const { kind, outcome, rev, document } = operation;
    if ((kind !== "get" && kind !== "seal") || outcome !== "done" || rev === undefined || document === undefined) return [];
    if (isSame(versions[rev]?.document ?? null, document)) return [];
    if (isFleeting(operation, keptById)) return [];
    const shown = `showed ${JSON.stringify(document)} as revision ${rev}, which is ${JSON.stringify(versions[rev])}`;
    return [{ promise: "G3", resource: name, at: operation.sentAt, what: `${name}: ${told(operation)} ${shown}` }];
  });
}

/** A plain read may show a write whose author was never answered and that a failover undid. A seal may not: it is a write itself. */
export function isFleeting({ kind, document }: Operation, keptById: Resource["keptById"]): boolean {
  return kind === "get" && document != null && !keptById.has(document.by);
}

function isSame(a: Document | null, b: Document | null): boolean {
  return a?.n === b?.n && a?.by === b?.by && a?.chain === b?.chain;
}
