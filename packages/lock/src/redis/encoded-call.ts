// Which questions travel together, and how they are written down. Every node is asked the same questions in the same order and under the same names, so a letter
// is written once and posted to all of them. Decides nothing about when or where it is sent.

import type { Keys } from "./keys.js";
import type { Asked } from "./pending-reply.js";
import { type CallText, type RequestName, writeCall } from "./requests.js";

/** At least one question, all of one kind, with equally many resources, and alike in what is shared. */
export type Run = readonly [Asked, ...Asked[]];

/** One script call: the name of the script, how many of the words are keys, and the words. */
export class EncodedCall {
  readonly name: RequestName;
  readonly keyCount: number;
  readonly words: readonly string[];
  /** Whether one word more, what is believed of the node, makes the answer shorter (see grant.lua). */
  readonly asksToConfirm: boolean;
  #wire: string | Buffer | undefined;

  constructor({ kind, question }: Asked, { keys, args }: CallText) {
    this.name = kind.name;
    this.keyCount = keys.length;
    this.words = keys.concat(args);
    this.asksToConfirm = kind.name === "grant" && args.length === 2 && kind.resourcesOf(question) === 1;
  }

  /** The words as Redis reads them; bytes where they are many, lest every node has them made anew. */
  get wire(): string | Buffer {
    if (this.#wire === undefined) {
      const text = wireOf(this.words);
      this.#wire = text.length < LONG_WIRE ? text : Buffer.from(text);
    }
    return this.#wire;
  }
}

const LONG_WIRE = 2_048;

/** A server executes a call in one go, and nobody else's meanwhile. */
const MAX_REQUESTS_PER_CALL = 256;
const MAX_RESOURCES_PER_CALL = 1_024;
/** Each node is written to once per turn of the event loop; few turns have letters of more kinds. */
const REMEMBERED = 4;

export class CallEncoder {
  readonly #keys: Keys;
  readonly #written: { readonly run: Run; readonly call: EncodedCall }[] = [];
  #oldest = 0;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  /** The letter that asks this; the very same one for each node that is asked the same. */
  encode(run: Run): EncodedCall {
    for (const { run: other, call } of this.#written) if (asksTheSame(run, other)) return call;
    const [first] = run;
    const call = new EncodedCall(first, writeCall(first.kind, this.#keys, run));
    this.#written[this.#oldest] = { run, call };
    this.#oldest = (this.#oldest + 1) % REMEMBERED;
    return call;
  }
}

function asksTheSame(one: Run, other: Run): boolean {
  if (one.length !== other.length || one[0].kind !== other[0].kind) return false;
  for (let i = 0; i < one.length; i++) if (one[i]?.question !== other[i]?.question) return false;
  return true;
}

function wireOf(words: readonly string[]): string {
  let wire = "";
  for (const word of words) wire += bulkString(word);
  return wire;
}

/** A word as Redis reads it. */
export function bulkString(word: string): string {
  return `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
}

/** Where the run that begins here ends: questions that are not of a kind follow in a letter of their own, in order. */
export function endOfBatch(queue: readonly Asked[], start: number): number {
  const first = queue[start];
  if (first === undefined) return start;
  const { kind, question } = first;
  const resources = kind.resourcesOf(question);
  const shared = kind.sharedBy(question);
  const limit = Math.min(queue.length, start + MAX_REQUESTS_PER_CALL, start + Math.ceil(MAX_RESOURCES_PER_CALL / resources));
  let end = start + 1;
  for (; end < limit; end++) {
    const next = queue[end];
    if (next?.kind !== kind || kind.resourcesOf(next.question) !== resources || kind.sharedBy(next.question) !== shared) break;
  }
  return end;
}
