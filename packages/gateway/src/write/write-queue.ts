// Which accepted writes go into one batch, and in which order: first come, first served, one row
// per resource at a time. Plain puts that wait for the same resource are folded into one row.
// Patches are in batches of their own, for which documents are read first. Bounded in writes and in
// bytes.
import type { Verdict, WriteRequest } from "../fence/verdict.js";
import type { Waiter } from "../store/bounded-wait.js";
import type { HeldRows } from "../store/slots.js";
import { isPatch, mostPatches } from "./patches.js";

export interface BatchLimits {
  readonly maxBatchRows: number;
  readonly maxBatchBytes: number;
  readonly documentLimitBytes: number;
}

export interface Entry extends Waiter {
  readonly request: WriteRequest;
  readonly verified: boolean;
  /** The resource most likely has a row. */
  readonly known: boolean;
  readonly settle: (verdict: WriteOutcome) => void;
  /** How often it failed for a reason of its own, or with a fold. */
  attempts: number;
  /** The request that it came with, where requests are traced. */
  readonly span?: unknown;
  /** The puts behind it that go with it as one row. */
  fold: readonly Entry[];
  /** Used by the queue only. */
  place: "behind" | "first" | "answered";
  /** The next write of the same resource, which may start when this one is answered. */
  next: Entry | undefined;
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
   * Of each resource at most one write is in these queues or in flight; later ones hang on it
   * as a chain. That keeps their order, and a hot resource costs nothing. A write that was answered
   * while it waited stays where it is until its turn.
   */
  readonly #alone = new Fifo<Entry>();
  readonly #lines: Readonly<Record<LineName, Fifo<Entry>>> = { writes: new Fifo(), patches: new Fifo(), apart: new Fifo() };
  /** They take turns: the one that was taken from last comes last. */
  readonly #turns: LineName[] = ["writes", "patches", "apart"];
  #apartInFlight: Entry | undefined;
  readonly #last = new Map<string, Entry>();

  constructor(limits: BatchLimits, heldRows: HeldRows) {
    this.#limits = limits;
    this.#heldRows = heldRows;
  }

  /** Whether there is something for `take`. */
  get hasWork(): boolean {
    return peek(this.#alone) !== undefined || this.#nextLine() !== undefined;
  }

  add(entry: Entry): void {
    const { resource } = entry.request;
    const before = this.#last.get(resource);
    this.#last.set(resource, entry);
    if (before === undefined) this.#makeFirst(entry);
    else before.next = entry;
  }

  /** The first write of each row of the next batch, by resource; empty when nothing may start. */
  take(): Entry[] {
    const alone = peek(this.#alone);
    if (alone !== undefined) {
      this.#alone.shift();
      return [alone];
    }
    const line = this.#nextLine();
    if (line === undefined) return [];
    this.#turns.push(...this.#turns.splice(this.#turns.indexOf(line), 1));
    return (line === "apart" ? this.#takeApart() : this.#takeBatch(this.#lines[line])).sort(byResource);
  }

  #takeApart(): Entry[] {
    this.#apartInFlight = this.#lines.apart.shift();
    return this.#apartInFlight === undefined ? [] : [this.#apartInFlight];
  }

  #takeBatch(rows: Fifo<Entry>): Entry[] {
    const { maxBatchRows, maxBatchBytes, documentLimitBytes } = this.#limits;
    const first = peek(rows);
    const maxRows = first !== undefined && isPatch(first) ? Math.min(maxBatchRows, mostPatches(documentLimitBytes)) : maxBatchRows;
    const batch: Entry[] = [];
    let [writes, bytes] = [0, 0];
    for (let entry = first; entry !== undefined && writes < maxRows; entry = peek(rows)) {
      bytes += entry.bytes;
      if (batch.length > 0 && bytes > maxBatchBytes) break;
      rows.shift();
      batch.push(entry);
      entry.fold = foldBehind(entry, { writes: maxBatchRows - writes - 1, bytes: maxBatchBytes - bytes });
      writes += 1 + entry.fold.length;
      for (const later of entry.fold) bytes += later.bytes;
    }
    return batch;
  }

  /** The first in turn that has a write waiting. */
  #nextLine(): LineName | undefined {
    return this.#turns.find((line) => peek(this.#lines[line]) !== undefined && (line !== "apart" || this.#apartInFlight === undefined));
  }

  /**
   * The entry was not applied and goes again, before the later writes of its resource. One that was
   * folded into another goes when its turn comes.
   */
  again(entry: Entry, way: Way): void {
    entry.fold = none;
    this.#landed(entry);
    if (entry.place === "first") this.#lineOf(entry, way).push(entry);
  }

  #lineOf(entry: Entry, way: Way): Fifo<Entry> {
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
    this.#landed(entry);
    const wasFirst = entry.place === "first";
    entry.place = "answered";
    if (!wasFirst) return;
    let { next } = entry;
    while (next?.place === "answered") next = next.next;
    if (next !== undefined) this.#makeFirst(next);
    else this.#last.delete(entry.request.resource);
  }

  #makeFirst(entry: Entry): void {
    entry.place = "first";
    this.again(entry, "batch");
  }
}

function peek(fifo: Fifo<Entry>): Entry | undefined {
  while (fifo.peek()?.place === "answered") fifo.shift();
  return fifo.peek();
}

export const none: readonly Entry[] = [];

/** Each write with those that were folded into it, in the order of their revisions. */
export function writesOf(batch: readonly Entry[]): readonly Entry[] {
  return batch.some(({ fold }) => fold.length > 0) ? batch.flatMap((entry) => [entry, ...entry.fold]) : batch;
}

/**
 * The writes waiting behind this one that Postgres may be sent as one row with it: what each of
 * them is answered and leaves behind is the same as if it had been sent by itself (decision 0008).
 */
function foldBehind(first: Entry, room: { readonly writes: number; readonly bytes: number }): readonly Entry[] {
  if (first.next === undefined || !isPlainPut(first)) return none;
  const fold: Entry[] = [];
  let { bytes } = room;
  for (let next: Entry | undefined = first.next; next !== undefined && fold.length < room.writes; next = next.next) {
    if (next.place === "answered") continue;
    bytes -= next.bytes;
    if (bytes < 0 || !isPlainPut(next) || !asksForTheSame(first, next)) break;
    fold.push(next);
  }
  return fold;
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
 * Any order will do if every gateway uses the same: two statements then lock their rows in the same
 * order.
 */
function byResource(a: Entry, b: Entry): number {
  return a.request.resource < b.request.resource ? -1 : 1;
}

/** First in, first out, in constant time. The owner bounds its length. */
class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  peek(): T | undefined {
    return this.#items[this.#head];
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#head += 1;
    // Half of the array is used up: moving the rest costs each item one copy on average.
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
