// Which accepted writes go into one batch, and in which order: first come, first served, one write
// per resource at a time. Bounded in rows and in bytes.
import type { Verdict, WriteRequest } from "../fence/verdict.js";
import { Fifo } from "../store/write-slots.js";

export interface QueueLimits {
  readonly maxBatchRows: number;
  readonly maxBatchBytes: number;
  readonly maxQueuedWrites: number;
  readonly maxQueuedBytes: number;
}

export interface Entry {
  readonly request: WriteRequest;
  readonly verified: boolean;
  /** The resource most likely has a row. */
  readonly known: boolean;
  readonly acceptedAt: number;
  readonly settle: (verdict: WriteOutcome) => void;
  attempts: number;
  /**
   * Used by the queue only: the next write of the same resource, which may start when this one is
   * done.
   */
  next?: Entry;
}

/**
 * The answer to a write. "unverified" is internal: ask the lock's nodes, then send the write again.
 */
export type WriteOutcome = Verdict | { readonly kind: "unverified" };

const MAX_SLOW_RESOURCES = 1_000;

export class WriteQueue {
  readonly #limits: QueueLimits;
  /**
   * Of each resource at most one write is in these two queues or in flight; later ones hang on it
   * as a chain. That keeps their order, and a hot resource costs nothing.
   */
  readonly #ready = new Fifo<Entry>();
  readonly #alone = new Fifo<Entry>();
  readonly #last = new Map<string, Entry>();
  /**
   * Resources whose row another transaction held for too long. Their writes travel alone until one
   * passes, so that they do not delay others.
   */
  readonly #slow = new Set<string>();
  #writes = 0;
  #bytes = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Waiting and in flight. */
  get writes(): number {
    return this.#writes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get hasWork(): boolean {
    return this.#alone.length + this.#ready.length > 0;
  }

  add(entry: Entry): "queued" | "full" {
    const { resource } = entry.request;
    const bytes = bytesOf(entry);
    const { maxQueuedWrites, maxQueuedBytes } = this.#limits;
    if (this.#writes >= maxQueuedWrites || (this.#writes > 0 && this.#bytes + bytes > maxQueuedBytes)) return "full";
    this.#writes += 1;
    this.#bytes += bytes;
    const before = this.#last.get(resource);
    this.#last.set(resource, entry);
    if (before === undefined) this.#makeReady(entry);
    else before.next = entry;
    return "queued";
  }

  /** The next batch, sorted by resource; empty when nothing may start. */
  take(): Entry[] {
    const alone = this.#alone.shift();
    if (alone !== undefined) return [alone];
    const { maxBatchRows, maxBatchBytes } = this.#limits;
    const batch: Entry[] = [];
    let bytes = 0;
    for (let entry = this.#ready.peek(); entry !== undefined && batch.length < maxBatchRows; entry = this.#ready.peek()) {
      const [first] = batch;
      bytes += bytesOf(entry);
      if (first !== undefined && (bytes > maxBatchBytes || isKeyed(first) !== isKeyed(entry))) break;
      this.#ready.shift();
      batch.push(entry);
    }
    return batch.sort(byResource);
  }

  /**
   * The entry failed in a batch, or lost a race: next time it is sent alone. It keeps its place
   * before the later writes of its resource.
   */
  retryAlone(entry: Entry): void {
    this.#alone.push(entry);
  }

  /** The entry has its verdict: the next write of its resource may start. */
  done(entry: Entry): void {
    this.#writes -= 1;
    this.#bytes -= bytesOf(entry);
    if (entry.next !== undefined) this.#makeReady(entry.next);
    else this.#last.delete(entry.request.resource);
  }

  markSlow(resource: string): void {
    this.#slow.add(resource);
    const [oldest] = this.#slow;
    if (this.#slow.size > MAX_SLOW_RESOURCES && oldest !== undefined) this.#slow.delete(oldest);
  }

  markPassed(resource: string): void {
    if (this.#slow.size > 0) this.#slow.delete(resource);
  }

  #makeReady(entry: Entry): void {
    if (this.#slow.has(entry.request.resource)) this.#alone.push(entry);
    else this.#ready.push(entry);
  }
}

export function isKeyed({ request }: Entry): boolean {
  return request.idempotency !== undefined;
}

/** Characters, which is close enough for a bound. */
function bytesOf({ request }: Entry): number {
  return request.resource.length + (request.value?.length ?? 0);
}

/**
 * Any order will do if every gateway uses the same: two statements then lock their rows in the same
 * order.
 */
function byResource(a: Entry, b: Entry): number {
  return a.request.resource < b.request.resource ? -1 : 1;
}
