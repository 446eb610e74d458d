// Every promise, held against the history of a run; and whether a concurrent history is equivalent
// to a sequence in which each operation takes effect at one moment between its beginning and its
// end: the search of Wing and Gong with Lowe's memory of what was tried.
import type { History, Operation, Violation } from "../history.js";
import { brokenLeases, fallenCounters } from "./leases.js";
import { brokenWrites, described, isFleeting, isWrite, type Kept, type StoredWrites, storedWrites } from "./writes.js";

export function judge(history: History): Violation[] {
  const resources = storedWrites(history);
  return [
    ...brokenLeases(history),
    ...brokenWrites(history, resources),
    ...resources.flatMap(unlinearizable),
    ...fallenCounters(history.counters),
    ...history.leftBehind.map((key): Violation => ({ promise: "end", what: `left behind: ${key}` })),
  ];
}

/**
 * One resource as a register that is read and modified. It goes by the answers and by the names in
 * the documents; revisions only bound when a write without an answer must have happened.
 */
export interface RegisterOperation {
  readonly name: string;
  readonly fromAt: number;
  /** Infinity for what was never answered and yet took effect. */
  readonly untilAt: number;
  /** The writer of what must be there when it happens. */
  readonly expects: string | null;
  /** What is there afterwards; undefined for a read. */
  readonly makes: string | null | undefined;
}

type Judgement =
  | { readonly linearizable: true }
  /** `stuck`: after the longest sequence that was found, none of these can come next. */
  | { readonly linearizable: false; readonly stuck: readonly RegisterOperation[]; readonly told: number };

/** All before `next` have happened, and the ones in `ahead`, which is sorted; `state` is there now. */
interface Point {
  readonly next: number;
  readonly ahead: readonly number[];
  readonly state: string | null;
}

export function linearizability(operations: readonly RegisterOperation[]): Judgement {
  const ordered = [...operations].sort((a, b) => a.fromAt - b.fromAt);
  const tried = new Set<string>();
  const stack: Point[] = [{ next: 0, ahead: [], state: null }];
  let best: { readonly told: number; readonly stuck: readonly RegisterOperation[] } = { told: -1, stuck: [] };
  for (let point = stack.pop(); point !== undefined; point = stack.pop()) {
    if (point.next === ordered.length) return { linearizable: true };
    const candidates = candidatesAt(ordered, point);
    const told = point.next + point.ahead.length;
    if (told > best.told) best = { told, stuck: candidates.map((index) => ordered[index] as RegisterOperation) };
    // The one that ends first is tried first, so it is pushed last.
    candidates.sort((a, b) => (ordered[b]?.untilAt ?? 0) - (ordered[a]?.untilAt ?? 0));
    for (const index of candidates) {
      const { expects, makes } = ordered[index] as RegisterOperation;
      if (point.state !== expects) continue;
      const after = advanced(point, index, makes === undefined ? point.state : makes);
      const key = `${after.next}/${after.ahead.join()}/${after.state ?? ""}`;
      if (tried.has(key)) continue;
      tried.add(key);
      stack.push(after);
    }
  }
  return { linearizable: false, ...best };
}

/** Those that may come next: none of the others had ended before they began. */
function candidatesAt(ordered: readonly RegisterOperation[], { next, ahead }: Point): number[] {
  const candidates: number[] = [];
  let firstEndAt = Number.POSITIVE_INFINITY;
  for (let index = next; index < ordered.length; index++) {
    const { fromAt, untilAt } = ordered[index] as RegisterOperation;
    if (fromAt > firstEndAt) break;
    if (ahead.includes(index)) continue;
    candidates.push(index);
    firstEndAt = Math.min(firstEndAt, untilAt);
  }
  return candidates.filter((index) => (ordered[index] as RegisterOperation).fromAt <= firstEndAt);
}

function advanced({ next, ahead }: Point, index: number, state: string | null): Point {
  if (index !== next) return { next, ahead: [...ahead, index].sort((a, b) => a - b), state };
  let after = next + 1;
  let skipped = 0;
  while (ahead[skipped] === after) {
    after++;
    skipped++;
  }
  return { next: after, ahead: ahead.slice(skipped), state };
}

function unlinearizable(resource: StoredWrites): Violation[] {
  const judgement = linearizability(registerOperations(resource));
  if (judgement.linearizable) return [];
  const stuck = judgement.stuck.map(({ name, expects }) => `${name} needs ${expects ?? "no document"}`).join("; ");
  const at = judgement.stuck[0]?.fromAt;
  const what = `${resource.name}: no order of the operations explains the answers; after ${judgement.told} of them: ${stuck}`;
  return [{ promise: "order", resource: resource.name, what, ...(at === undefined ? {} : { at }) }];
}

/** Reads that were answered, and writes that took effect. */
function registerOperations({ operations, kept, keptById }: StoredWrites): RegisterOperation[] {
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
