// What the store kept of one resource, each change beside the call that asked for it.
import type { Entry, History } from "../history/history.js";
import { groupedBy, type Operation, type Violation } from "../history/records.js";

export interface Kept {
  readonly entry: Entry;
  readonly operation: Operation;
}

export interface StoredWrites {
  readonly name: string;
  /** Of this resource only. */
  readonly operations: readonly Operation[];
  /** In the order of revisions. */
  readonly kept: readonly Kept[];
  /** By the name of the write. */
  readonly keptById: ReadonlyMap<string, readonly Kept[]>;
  /** Changes that no client asked for. */
  readonly strays: readonly Violation[];
}

export function isWrite({ kind }: Operation): boolean {
  return kind === "put" || kind === "patch" || kind === "delete" || kind === "guarded";
}

export function storedWrites({ operations, entries }: Pick<History, "operations" | "entries">): StoredWrites[] {
  const entriesOf = groupedBy(entries, ({ resource }) => resource);
  const operationsOf = groupedBy(operations, ({ resource }) => resource);
  const names = new Set([...entriesOf.keys(), ...operationsOf.keys()]);
  return [...names].sort().map((name) => storedOf(name, operationsOf.get(name) ?? [], entriesOf.get(name) ?? []));
}

function storedOf(name: string, operations: readonly Operation[], entries: readonly Entry[]): StoredWrites {
  const byId = new Map<string, Operation>();
  const byPlace = new Map<string, Operation>();
  for (const operation of operations.filter(isWrite)) {
    byId.set(operation.id, operation);
    byPlace.set(`${operation.token};${operation.seq}`, operation);
  }
  const kept: Kept[] = [];
  const strays: Violation[] = [];
  for (const entry of [...entries].sort((a, b) => a.rev - b.rev)) {
    const operation = entry.by === undefined ? byPlace.get(`${entry.token};${entry.seq}`) : byId.get(entry.by);
    if (operation !== undefined) kept.push({ entry, operation });
    else
      strays.push({
        promise: "G3",
        resource: name,
        what: `${name}: revision ${entry.rev} (token ${entry.token}, seq ${entry.seq}) is stored, and no client with a lease asked for it`,
      });
  }
  return { name, operations, kept, keptById: groupedBy(kept, ({ operation }) => operation.id), strays };
}

export function described({ id, kind, token, seq, outcome, code }: Operation): string {
  const place = token === undefined ? "" : ` with token ${token}${seq === undefined ? "" : `;seq=${seq}`}`;
  return `${kind} ${id}${place} (${outcome}${code === undefined ? "" : `, ${code}`})`;
}
