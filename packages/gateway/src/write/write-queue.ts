// What of a resource waits and what is in flight: which accepted writes go into one batch, and in
// which order. First come, first served, one row per resource at a time. Plain puts that wait for
// the same resource are folded into one row. Patches are in batches of their own, for which
// documents are read first. Bounded in writes and in bytes.
import type { Verdict, WriteRequest } from "../fence/verdict.js";
import type { HeldRows } from "../store/slots.js";
import { isPatch, mostPatches } from "./patches.js";
import type { QueuedRow } from "./statement.js";

export interface BatchLimits {
  readonly maxBatchRows: number;
  readonly maxBatchBytes: number;
  readonly documentLimitBytes: number;
}

/** An accepted write. */
export interface Entry extends QueuedRow {
  readonly settle: (verdict: WriteOutcome) => void;
  /** The request that it came with, where requests are traced. */
  readonly span: unknown;
  /** Not of one that is sent again: its resource may have turned out to have no row. */
  known: boolean;
  /** How often it failed for a reason of its own, or with a fold. */
  attempts: number;
  /** The puts behind it that go with it as one row. */
  fold: readonly Entry[];
}

/**
 * The answer to a write. "unverified" is internal: ask the lock's nodes, then send the write again.
 */
export type WriteOutcome = Verdict | { readonly kind: "unverified" };

/** How a write is sent: with others, or by itself. */
export type Way = "batch" | "alone";

/** What batches are taken from. apart: each by itself, one at a time, because its row is held. */
type LineName = "writes" | "patches" | "apart";

export class WriteQueue {
  readonly #limits: BatchLimits;
  readonly #heldRows: HeldRows;
  /**
   * The writes of each resource that are not answered, in their order. The first of them is in flight
   * or in one of the lines below; the others wait behind it, where a hot resource costs nothing.
   */
  readonly #ofResource = new Map<string, Entry[]>();
  /** In the order in which they came. */
  readonly #alone = new Set<Entry>();
  readonly #lines: Readonly<Record<LineName, Set<Entry>>> = { writes: new Set(), patches: new Set(), apart: new Set() };
  readonly #sets = [this.#alone, ...Object.values(this.#lines)];
  /** They take turns: the one that was taken from last comes last. */
  readonly #turns: LineName[] = ["writes", "patches", "apart"];
  #apartInFlight: Entry | undefined;

  constructor(limits: BatchLimits, heldRows: HeldRows) {
    this.#limits = limits;
    this.#heldRows = heldRows;
  }

  /** Whether there is something for `take`. */
  get hasWork(): boolean {
    return this.#alone.size > 0 || this.#nextLine() !== undefined;
  }

  add(entry: Entry): void {
    const { resource } = entry.request;
    const before = this.#ofResource.get(resource);
    if (before !== undefined) before.push(entry);
    else {
      this.#ofResource.set(resource, [entry]);
      this.#lineOf(entry, "batch").add(entry);
    }
  }

  /** The first write of each row of the next batch, by resource; empty when nothing may start. */
  take(): Entry[] {
    const [alone] = this.#alone;
    if (alone !== undefined) {
      this.#alone.delete(alone);
      return [alone];
    }
    const line = this.#nextLine();
    if (line === undefined) return [];
    this.#turns.push(...this.#turns.splice(this.#turns.indexOf(line), 1));
    const { maxBatchRows } = this.#limits;
    if (line === "writes") return this.#takeBatch(this.#lines.writes, maxBatchRows);
    if (line === "patches")
      return this.#takeBatch(this.#lines.patches, Math.min(maxBatchRows, mostPatches(this.#limits.documentLimitBytes)));
    const batch = this.#takeBatch(this.#lines.apart, 1);
    [this.#apartInFlight] = batch;
    return batch;
  }

  #takeBatch(line: Set<Entry>, maxWrites: number): Entry[] {
    const { maxBatchBytes } = this.#limits;
    const batch: Entry[] = [];
    let [writes, bytes] = [0, 0];
    for (const entry of line) {
      bytes += bytesOf(entry.request);
      if (batch.length > 0 && (writes >= maxWrites || bytes > maxBatchBytes)) break;
      line.delete(entry);
      batch.push(entry);
      entry.fold = this.#foldBehind(entry, { writes: maxWrites - writes - 1, bytes: maxBatchBytes - bytes });
      writes += 1 + entry.fold.length;
      for (const later of entry.fold) bytes += bytesOf(later.request);
    }
    return batch.sort(byResource);
  }

  /**
   * The writes waiting behind this one that Postgres may be sent as one row with it: what each of
   * them is answered and leaves behind is the same as if it had been sent by itself (decision 0008).
   */
  #foldBehind(first: Entry, room: { readonly writes: number; readonly bytes: number }): readonly Entry[] {
    const all = this.#ofResource.get(first.request.resource) ?? [];
    if (all.length < 2 || room.writes <= 0 || !isPlainPut(first)) return none;
    let [end, { bytes }] = [1, room];
    for (; end < all.length && end <= room.writes; end += 1) {
      const next = all[end] as Entry;
      bytes -= bytesOf(next.request);
      if (bytes < 0 || !isPlainPut(next) || !asksForTheSame(first, next)) break;
    }
    return all.slice(1, end);
  }

  /** The first in turn that has a write waiting. */
  #nextLine(): LineName | undefined {
    return this.#turns.find((line) => this.#lines[line].size > 0 && (line !== "apart" || this.#apartInFlight === undefined));
  }

  /** Those that wait behind the first write of its resource. */
  behind({ request: { resource } }: Entry): readonly Entry[] {
    return this.#ofResource.get(resource)?.slice(1) ?? none;
  }

  /**
   * The entry was not applied and goes again, before the later writes of its resource. One that was
   * folded into another goes when its turn comes.
   */
  again(entry: Entry, way: Way): void {
    entry.fold = none;
    this.#landed(entry);
    if (this.#ofResource.get(entry.request.resource)?.[0] === entry) this.#lineOf(entry, way).add(entry);
  }

  #lineOf(entry: Entry, way: Way): Set<Entry> {
    if (this.#heldRows.has(entry.request.resource)) return this.#lines.apart;
    if (way === "alone") return this.#alone;
    return isPatch(entry) ? this.#lines.patches : this.#lines.writes;
  }

  #landed(entry: Entry): void {
    if (this.#apartInFlight === entry) this.#apartInFlight = undefined;
  }

  /**
   * The entry was answered, in flight or while it waited: the next write of its resource may start.
   */
  done(entry: Entry): void {
    const { resource } = entry.request;
    const all = this.#ofResource.get(resource) ?? [];
    const place = all.indexOf(entry);
    if (place > 0) all.splice(place, 1);
    if (place !== 0) return;
    this.#landed(entry);
    for (const line of this.#sets) line.delete(entry);
    all.shift();
    const [next] = all;
    if (next === undefined) this.#ofResource.delete(resource);
    else this.#lineOf(next, "batch").add(next);
  }
}

export const none: readonly Entry[] = [];

/** Each write with those that were folded into it, in the order of their revisions. */
export function writesOf(batch: readonly Entry[]): readonly Entry[] {
  return batch.some(({ fold }) => fold.length > 0) ? batch.flatMap((entry) => [entry, ...entry.fold]) : batch;
}

/** Nothing but its token can refuse it. One that was sent before goes by itself. */
function isPlainPut({ attempts, request: { op, seq, expected } }: Entry): boolean {
  return op === "put" && seq === undefined && expected === undefined && attempts === 0;
}

/** History has one holder for all revisions of a row. */
function asksForTheSame(first: Entry, other: Entry): boolean {
  const { request, verified } = other;
  return request.token === first.request.token && verified === first.verified && request.holder === first.request.holder;
}

/** Characters, which is close enough for a bound. */
export function bytesOf(request: WriteRequest): number {
  return request.resource.length + (request.value?.length ?? 0);
}

/**
 * Any order will do if every gateway uses the same, and transactions as well (transaction.ts): two
 * statements then lock their rows in the same order, and cannot deadlock.
 */
function byResource(a: Entry, b: Entry): number {
  return a.request.resource < b.request.resource ? -1 : 1;
}
