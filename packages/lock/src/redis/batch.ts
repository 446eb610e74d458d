// Requests that are sent to a node in one turn of the event loop and travel in one script call: the
// pending replies, which of them make a batch, and the call they become.
import type { Ballot } from "../protocol/ballot.js";
import type { Reply } from "../protocol/node.js";
import type { Keys } from "./keys.js";
import { type CallText, type RequestKind, type RequestName, writeCall } from "./requests.js";

/**
 * One request to one node and the callback for its ballot. Every lease needs ten of them, so this
 * is one object without a promise.
 */
export class PendingReply implements Reply<Ballot> {
  readonly kind: RequestKind<unknown, Ballot>;
  readonly question: unknown;
  /** The generation in which it was asked: an answer of another one does not count. */
  readonly generation: string;
  #ballot: Ballot | undefined;
  #callback: ((ballot: Ballot) => void) | undefined;

  constructor(kind: RequestKind<unknown, Ballot>, question: unknown, generation: string) {
    this.kind = kind;
    this.question = question;
    this.generation = generation;
  }

  // biome-ignore lint/suspicious/noThenProperty: to be awaited is what it is for.
  then(callback: (ballot: Ballot) => void): void {
    if (this.#ballot !== undefined) void Promise.resolve(this.#ballot).then(callback);
    else if (this.#callback === undefined) this.#callback = callback;
    else throw new Error("a reply has one callback");
  }

  /** Calls back at once, within this call. */
  resolve(ballot: Ballot): void {
    this.#ballot = ballot;
    this.#callback?.(ballot);
  }
}

/**
 * At least one request, all of one kind, with equally many resources, and alike in what is shared.
 */
export type Batch = readonly [PendingReply, ...PendingReply[]];

/** A server executes a call in one go, and nothing else meanwhile. */
const MAX_REQUESTS_PER_CALL = 256;
const MAX_RESOURCES_PER_CALL = 1_024;

/**
 * Where the batch that begins here ends: requests of another kind follow in a call of their own, in
 * order.
 */
export function endOfBatch(queue: readonly PendingReply[], start: number): number {
  const first = queue[start];
  if (first === undefined) return start;
  const { kind, question } = first;
  const resources = kind.resourcesOf(question);
  const shared = kind.sharedBy(question);
  const ticket = kind.ticketOf?.(question);
  const limit = Math.min(queue.length, start + MAX_REQUESTS_PER_CALL, start + Math.ceil(MAX_RESOURCES_PER_CALL / resources));
  let end = start + 1;
  for (; end < limit; end++) {
    const next = queue[end];
    if (next?.kind !== kind || kind.resourcesOf(next.question) !== resources || kind.sharedBy(next.question) !== shared) break;
    if (kind.ticketOf?.(next.question) !== ticket) break;
  }
  return end;
}

/** Longer calls are kept as bytes, so that they are not converted again for every node. */
const LONG_WIRE = 2_048;

/** One script call: the name of the script, how many of the words are keys, and the words. */
export class EncodedCall {
  readonly name: RequestName;
  readonly keyCount: number;
  readonly words: readonly string[];
  /**
   * Whether the node may be sent its admission record as last heard, as one word more, which makes
   * the answer shorter (see grant.lua).
   */
  readonly confirmsRecord: boolean;
  #wire: string | Buffer | undefined;

  constructor({ kind, question }: PendingReply, { keys, args }: CallText) {
    this.name = kind.name;
    this.keyCount = keys.length;
    this.words = keys.concat(args);
    this.confirmsRecord = kind.name === "grant" && args.length === 3 && kind.resourcesOf(question) === 1;
  }

  /** The words as Redis reads them. */
  get wire(): string | Buffer {
    if (this.#wire === undefined) {
      let wire = "";
      for (const word of this.words) wire += bulkString(word);
      this.#wire = wire.length < LONG_WIRE ? wire : Buffer.from(wire);
    }
    return this.#wire;
  }
}

/** A word as Redis reads it. */
export function bulkString(word: string): string {
  return `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
}

/**
 * Each node is written to once per turn of the event loop; few turns have batches of more kinds.
 */
const REMEMBERED = 4;

/**
 * What the nodes of a fleet share: the end of a turn, and calls that are encoded once, since every
 * node is sent the same requests in the same order.
 */
export class BatchEncoder {
  readonly #keys: Keys;
  readonly #encoded: { readonly batch: Batch; readonly call: EncodedCall }[] = [];
  #oldest = 0;
  #atTurnEnd: (() => void)[] = [];
  readonly #run = (): void => {
    const due = this.#atTurnEnd;
    this.#atTurnEnd = [];
    for (const run of due) run();
  };
  readonly #schedule = (): void => process.nextTick(this.#run);

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  /** The call for this batch; the very same one for each node that is sent the same. */
  encode(batch: Batch): EncodedCall {
    for (const { batch: other, call } of this.#encoded) if (areSame(batch, other)) return call;
    const [first] = batch;
    const call = new EncodedCall(first, writeCall(first.kind, this.#keys, batch));
    this.#encoded[this.#oldest] = { batch, call };
    this.#oldest = (this.#oldest + 1) % REMEMBERED;
    return call;
  }

  /**
   * Calls back after all microtasks of the present turn, so that callers that wake together travel
   * together. `run` must not throw.
   */
  atTurnEnd(run: () => void): void {
    // Not queueMicrotask, which makes an async resource of every call.
    if (this.#atTurnEnd.length === 0) void Promise.resolve().then(this.#schedule);
    this.#atTurnEnd.push(run);
  }
}

function areSame(one: Batch, other: Batch): boolean {
  if (one.length !== other.length || one[0].kind !== other[0].kind) return false;
  for (let i = 0; i < one.length; i++) if (one[i]?.question !== other[i]?.question) return false;
  return true;
}
