// From questions to script calls and back: which requests travel in one call, the words of that call,
// encoded once for all nodes of a fleet, and how a reply is divided among the requests.
import { type AnyVerb, type Asked, type Keys, list, text } from "../protocol/verbs.js";

/** One call of a script that is no verb's, outside of the pipeline. KEYS are the node's record and the marks. */
export interface ScriptCall<Reply> {
  readonly source: string;
  readonly args: readonly string[];
  read(reply: unknown): Reply;
}

/** One request to one node. */
export interface Request {
  readonly verb: AnyVerb;
  readonly question: Asked;
}

/**
 * At least one request, all for one script, with equally many resources, and alike in what is
 * shared.
 */
export type Batch<R extends Request = Request> = readonly [R, ...R[]];

/** A server executes a call in one go, and nothing else meanwhile. */
const MAX_REQUESTS_PER_CALL = 256;
const MAX_RESOURCES_PER_CALL = 1_024;

/**
 * Where the batch that begins here ends: requests for another script follow in a call of their own,
 * in order.
 */
export function endOfBatch(queue: readonly Request[], start: number): number {
  const first = queue[start];
  if (first === undefined) return start;
  const { script, ttlOf } = first.verb;
  const resources = first.question.resources.length;
  const ttlMs = ttlOf?.(first.question);
  const limit = Math.min(queue.length, start + MAX_REQUESTS_PER_CALL, start + Math.ceil(MAX_RESOURCES_PER_CALL / resources));
  let end = start + 1;
  for (; end < limit; end++) {
    const next = queue[end];
    if (next?.verb.script !== script || next.question.resources.length !== resources || ttlOf?.(next.question) !== ttlMs) break;
  }
  return end;
}

/**
 * Each node is written to once per turn of the event loop; few turns have batches for more scripts.
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
    const call = encoded(batch, this.#keys);
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
  if (one.length !== other.length) return false;
  for (let i = 0; i < one.length; i++) {
    if (one[i]?.question !== other[i]?.question || one[i]?.verb !== other[i]?.verb) return false;
  }
  return true;
}

function encoded(batch: Batch, keys: Keys): EncodedCall {
  const [{ verb, question }] = batch;
  const needsAdmission = verb.needs === "admission";
  const named: string[] = needsAdmission ? [keys.node] : [];
  const args: string[] = [];
  if (verb.ttlOf !== undefined) args.push(String(verb.ttlOf(question)));
  for (const each of batch) {
    for (const resource of each.question.resources) {
      named.push(keys.lock(resource));
      if (needsAdmission) named.push(keys.token(resource));
    }
    each.verb.write(args, each.question, keys);
  }
  const confirmsAdmission = verb.confirmsAdmission === true && batch.length === 1 && question.resources.length === 1;
  return new EncodedCall(verb, { keys: named, args }, confirmsAdmission);
}

/** Longer calls are kept as bytes, so that they are not converted again for every node. */
const LONG_WIRE = 2_048;

/** A call of a script that the server knows: its name, how many of the words are keys, and the words. */
export class EncodedCall {
  readonly script: AnyVerb["script"];
  readonly keyCount: number;
  readonly words: readonly string[];
  /** It may take the confirmed admission of a node along, a word more: that makes the answer shorter. */
  readonly confirmsAdmission: boolean;
  #wire: string | Buffer | undefined;

  constructor({ script }: AnyVerb, words: { readonly keys: string[]; readonly args: string[] }, confirmsAdmission: boolean) {
    this.script = script;
    this.keyCount = words.keys.length;
    this.words = words.keys.concat(words.args);
    this.confirmsAdmission = confirmsAdmission;
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

/** What a call answered. */
interface CallReply {
  /** The field admitted (record.ts); empty: not admitted; undefined: not asked for. */
  readonly admitted: string | undefined;
  /** One for each request; null where the node is not admitted. */
  readonly replies: readonly unknown[];
}

/** A bare number answers a single request and confirms the admission that was sent; a list begins with it. */
export function readCall(reply: unknown, requests: number, sentAdmission: string | undefined): CallReply {
  if (typeof reply === "number" && requests === 1) return { admitted: sentAdmission, replies: [reply] };
  if (reply === "") return { admitted: "", replies: new Array(requests).fill(null) };
  const [admitted, ...replies] = list(reply, requests + 1);
  // A script that needs no admission does not read it.
  return { admitted: admitted === "-" ? undefined : text(admitted), replies };
}
