// Which accepted writes go into one batch, and in which order: first come, first served, one row
// per resource at a time, all of one shard. Plain puts that wait for the same resource are folded
// into one row. Bounded in writes and in bytes.
import type { Verdict, WriteRequest } from "../fence/verdict.js";
import type { Waiter } from "../store/bounded-wait.js";
import { Fifo, type SlowRows } from "../store/write-slots.js";

export interface BatchLimits {
  readonly maxBatchRows: number;
  readonly maxBatchBytes: number;
}

export interface Entry extends Waiter {
  readonly request: WriteRequest;
  readonly verified: boolean;
  /** The resource most likely has a row. */
  readonly known: boolean;
  /** That keeps the resource, where tables have shards; otherwise 0. */
  readonly shard: number;
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

/**
 * How a write is sent: with others, by itself, or by itself on a connection that is set aside for
 * slow rows.
 */
export type Way = "batch" | "alone" | "slow";

export class WriteQueue {
  readonly #limits: BatchLimits;
  readonly #slowRows: SlowRows;
  /**
   * Of each resource at most one write is in these three queues or in flight; later ones hang on it
   * as a chain. That keeps their order, and a hot resource costs nothing. A write that was answered
   * while it waited stays where it is until its turn.
   */
  readonly #ways: Readonly<Record<Exclude<Way, "batch">, Fifo<Entry>>> = { alone: new Fifo(), slow: new Fifo() };
  /** By shard, so that a batch stays within one; the shards take turns. */
  readonly #batches = new Map<number, Fifo<Entry>>();
  readonly #last = new Map<string, Entry>();

  constructor(limits: BatchLimits, slowRows: SlowRows) {
    this.#limits = limits;
    this.#slowRows = slowRows;
  }

  /** Whether there is something for `take`. */
  get hasWork(): boolean {
    return peek(this.#ways.alone) !== undefined || this.#nextShard() !== undefined;
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
    const alone = peek(this.#ways.alone);
    if (alone !== undefined) {
      this.#ways.alone.shift();
      return [alone];
    }
    const shard = this.#nextShard();
    const rows = shard === undefined ? undefined : this.#batches.get(shard);
    if (shard === undefined || rows === undefined) return [];
    const batch = this.#takeFrom(rows);
    if (this.#batches.size > 1) {
      this.#batches.delete(shard);
      if (peek(rows) !== undefined) this.#batches.set(shard, rows);
    }
    return batch.sort(byResource);
  }

  #takeFrom(rows: Fifo<Entry>): Entry[] {
    const { maxBatchRows, maxBatchBytes } = this.#limits;
    const batch: Entry[] = [];
    let [writes, bytes] = [0, 0];
    for (let entry = peek(rows); entry !== undefined && writes < maxBatchRows; entry = peek(rows)) {
      const [first] = batch;
      bytes += entry.bytes;
      if (first !== undefined && (bytes > maxBatchBytes || isKeyed(first) !== isKeyed(entry))) break;
      rows.shift();
      batch.push(entry);
      entry.fold = foldBehind(entry, { writes: maxBatchRows - writes - 1, bytes: maxBatchBytes - bytes });
      writes += 1 + entry.fold.length;
      for (const later of entry.fold) bytes += later.bytes;
    }
    return batch;
  }

  /** The first in turn that has a write waiting. */
  #nextShard(): number | undefined {
    for (const [shard, rows] of this.#batches) {
      if (peek(rows) !== undefined) return shard;
      if (this.#batches.size > 1) this.#batches.delete(shard);
    }
    return undefined;
  }

  /** The next write for the slow lane. */
  takeSlow(): Entry | undefined {
    const entry = peek(this.#ways.slow);
    if (entry !== undefined) this.#ways.slow.shift();
    return entry;
  }

  /**
   * The entry was not applied and goes again, before the later writes of its resource. One that was
   * folded into another goes when its turn comes.
   */
  again(entry: Entry, way: Way): void {
    entry.fold = none;
    if (entry.place === "first") this.#lineFor(way, entry.shard).push(entry);
  }

  #lineFor(way: Way, shard: number): Fifo<Entry> {
    if (way !== "batch") return this.#ways[way];
    const known = this.#batches.get(shard);
    if (known !== undefined) return known;
    const rows = new Fifo<Entry>();
    this.#batches.set(shard, rows);
    return rows;
  }

  /**
   * The entry was answered, in flight or while it waited: the next write of its resource may start.
   */
  done(entry: Entry): void {
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
    this.again(entry, this.#slowRows.has(entry.request.resource) ? "slow" : "batch");
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
 * them is answered and leaves behind is the same as if it had been sent by itself (ADR 0094).
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
function isPlainPut({ attempts, request: { op, seq, expected, idempotency } }: Entry): boolean {
  return op === "put" && seq === undefined && expected === undefined && idempotency === undefined && attempts === 0;
}

/** History has one holder for all revisions of a row. */
function asksForTheSame(first: Entry, other: Entry): boolean {
  const { request, verified } = other;
  return request.token === first.request.token && verified === first.verified && request.holder === first.request.holder;
}

export function isKeyed({ request }: Entry): boolean {
  return request.idempotency !== undefined;
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
