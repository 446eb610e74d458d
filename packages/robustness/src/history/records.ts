// What the processes of a run record: documents, leases, pauses, calls with their answers; and
// what is found to be wrong with that. All instants are milliseconds of the machine's monotonic
// clock, which is one for all processes, so that records of different processes can be compared.
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

export interface Document {
  readonly n: number;
  readonly by: string;
  readonly chain: string;
}

/** What a read showed: revision 0 and no document where nothing was ever written. */
export interface Seen {
  readonly rev: number;
  readonly document: Document | null;
}

/** The document after one more write. */
export function successor(before: Document | null, by: string): Document {
  const chain = createHash("sha1")
    .update(`${before?.chain ?? ""}/${by}`)
    .digest("base64url")
    .slice(0, 16);
  return { n: (before?.n ?? 0) + 1, by, chain };
}

// What the processes of a run record: leases, pauses, calls with their answers; and what is found
// to be wrong with that. All instants are milliseconds of the machine's monotonic clock, which is
// one for all processes, so that records of different processes can be compared.
export interface Span {
  readonly fromAt: number;
  readonly untilAt: number;
}

/** One lease of one resource, as its holder saw it. */
export interface LeaseRecord {
  readonly client: number;
  readonly resource: string;
  readonly token: number;
  /** When the acquire that won it began, or a little before. Never after. */
  readonly beganAt: number;
  /** When the holder had it in hand. */
  readonly grantedAt: number;
  /** Until when it was valid by the holder's own deadline, or a little less; renewals included. */
  readonly validUntilAt: number;
  /** When the holder began to release it; absent if it never did. */
  readonly releasedAt?: number;
  /** When the holder's signal told of the end, if that came before the release. */
  readonly toldAt?: number;
}

/** A time in which a client did not run: it was stopped, or the machine had no time for it. */
export interface Pause extends Span {
  readonly client: number;
}

export type WriteKind = "put" | "patch" | "delete";
type CallKind = WriteKind | "seal" | "get" | "guarded" | "forged" | "malformed";
export type Via = "client" | "withResource" | "fetch" | "transaction" | "guard" | "unfenced" | "intruder";

/** done: told so. refused: told that nothing was changed. unknown: anything else. */
export type CallOutcome = "done" | "refused" | "unknown";

/** The revision and the author of a document that a write was made from. */
export interface Basis {
  readonly rev: number;
  readonly by: string | null;
}

export interface Call {
  /** Unique in the run. A write stores it in the document. */
  readonly id: string;
  readonly kind: CallKind;
  readonly via: Via;
  readonly resource: string;
  readonly token?: number;
  readonly seq?: number;
  readonly on?: Basis;
  /** Equal for the writes of one transaction. */
  readonly group?: string;
}

export interface Answer {
  readonly outcome: CallOutcome;
  readonly code?: string;
  readonly rev?: number;
}

/** A call with its answer. */
export interface Operation extends Call, Answer {
  readonly author: string;
  readonly sentAt: number;
  /** Infinity where no answer was recorded: the author was killed. */
  readonly answeredAt: number;
  /** What a read showed. */
  readonly document?: Document | null;
}

/** What a node had stored at one moment. */
export interface CounterSample {
  readonly node: string;
  /** Counts the node's losses of memory. */
  readonly memory: number;
  readonly floor: number;
  readonly counter: number;
}

/** What a checker found to be wrong. */
export interface Violation {
  readonly promise: "T1" | "T2" | "L1" | "L2" | "G1" | "G2" | "G3" | "G4" | "G8" | "order" | "counters" | "end";
  readonly what: string;
  /** When it showed, where that is known. */
  readonly at?: number;
  readonly resource?: string;
  /** How many updates are lost by it. */
  readonly lostUpdates?: number;
}

/** Waits for so long; false if the signal came first. */
export async function waited(ms: number, over: AbortSignal): Promise<boolean> {
  return await sleep(ms, true, { signal: over }).catch((error: Error) => {
    if (error.name === "AbortError") return false;
    throw error;
  });
}

export function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Groups in order of first appearance. */
export function groupedBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

/** How often each word occurs, the most frequent first. */
export function counted(words: readonly string[]): [string, number][] {
  return [...groupedBy(words, (word) => word)].map(([word, all]): [string, number] => [word, all.length]).sort(([, a], [, b]) => b - a);
}

/** For each of `later`, the highest of `earlier` before it, or undefined. Both are in order. */
export function highestBefore<E, L>(
  earlier: readonly E[],
  later: readonly L[],
  { isBefore, height }: { isBefore: (a: E, b: L) => boolean; height: (one: E) => number },
): (E | undefined)[] {
  let next = 0;
  let highest: E | undefined;
  return later.map((one) => {
    for (let candidate = earlier[next]; candidate !== undefined && isBefore(candidate, one); candidate = earlier[++next])
      if (highest === undefined || height(candidate) > height(highest)) highest = candidate;
    return highest;
  });
}
