// How a resource, a document and a token are written into a request.

import { checkAwaited, checkDocument, checkLease, shown } from "./misuse.js";

const MAX_TOKEN = 999_999_999_999_999;

/** The part of a lease the client needs; the leases of @palisade/lock fit. */
export interface LeaseLike {
  /** The fencing token that the write carries. */
  readonly token: number;
  /** Aborts when the lease ends; nothing is sent after that. */
  readonly signal: AbortSignal;
  /** When present, the lease is refused for any other resource. */
  readonly resources?: readonly string[] | undefined;
}

/** Who writes: a lease, which also ends the call when it is lost, or a token alone. */
export type Holder = { readonly lease: LeaseLike; readonly token?: undefined } | { readonly token: number; readonly lease?: undefined };

/**
 * A token comes from a lease or from the caller, never from memory: a remembered token outlives its
 * lease.
 */
export function tokenOf(holder: { readonly lease?: LeaseLike | undefined; readonly token?: number | undefined }): number {
  checkAwaited(holder.lease);
  const token = holder.lease?.token ?? holder.token;
  if (token === undefined) throw new TypeError("the call needs { lease } or { token }: every write says which holder it is of");
  if (typeof token !== "number") throw new TypeError(`a fencing token is a number, as in lease.token, not ${shown(token)}`);
  if (!Number.isSafeInteger(token) || token < 1 || token > MAX_TOKEN)
    throw new RangeError(`a fencing token is a whole number from 1 to ${MAX_TOKEN}, not ${token}`);
  return token;
}

/** The token of a call about one resource; a lease of others is refused. */
export function tokenFor(
  resource: string,
  holder: { readonly lease?: LeaseLike | undefined; readonly token?: number | undefined },
): number {
  checkLease(resource, holder.lease?.resources);
  return tokenOf(holder);
}

/** The value of the Fencing-Token header. */
export function fencingHeader(token: number, seq: number | undefined): string {
  if (seq === undefined) return String(token);
  if (!Number.isSafeInteger(seq) || seq < 1 || seq > MAX_TOKEN)
    throw new RangeError(`a sequence number is a whole number from 1, not ${seq}`);
  return `${token};seq=${seq}`;
}

/** How many look after a token's numbers for a resource, and the highest that a call has used. */
const numbers = new Map<string, { users: number; last: number }>();

const numbersOf = (resource: string, token: number): string => `${token} ${resource}`;

/** Called for every write, before it is sent. */
export function noteNumber(resource: string, token: number | undefined, seq: number | undefined): void {
  if (numbers.size === 0 || token === undefined || seq === undefined) return;
  const known = numbers.get(numbersOf(resource, token));
  if (known !== undefined) known.last = Math.max(known.last, seq);
}

/** The numbers that calls use under a token, from now on; kept until `end`. */
export function watchNumbers(resources: readonly string[], token: number): { next(resource: string): number; end(): void } {
  for (const resource of resources) {
    const known = numbers.get(numbersOf(resource, token));
    if (known === undefined) numbers.set(numbersOf(resource, token), { users: 1, last: 0 });
    else known.users += 1;
  }
  return {
    next: (resource) => (numbers.get(numbersOf(resource, token))?.last ?? 0) + 1,
    end: () => {
      for (const resource of resources) {
        const known = numbers.get(numbersOf(resource, token));
        if (known?.users === 1) numbers.delete(numbersOf(resource, token));
        else if (known !== undefined) known.users -= 1;
      }
    },
  };
}

/**
 * A resource name as part of a URL: each segment percent-encoded once, slashes kept. Names that
 * fetch would silently rewrite into another name are refused.
 */
export function resourcePath(resource: string): string {
  if (typeof resource !== "string") throw new TypeError(`a resource name is text such as "orders/42", not ${shown(resource)}`);
  if (resource === "") throw new RangeError("a resource name must not be empty");
  return resource.split("/").map(encodeSegment).join("/");
}

function encodeSegment(segment: string): string {
  if (segment === "" || segment === "." || segment === "..") {
    throw new RangeError(`a resource name must not have the segment ${JSON.stringify(segment)}: URLs drop it on the way`);
  }
  return encodeURIComponent(segment);
}

/** The query of a URL; parameters that are undefined are left out. */
export function queryText(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? "" : `?${query}`;
}

/** JSON that is already text: JSON.parse would round 12345678901234567890. */
export class RawJson {
  /** Sent as it is. */
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/**
 * A document as text, so that its numbers keep every digit. Throws SyntaxError unless it is JSON.
 */
export function rawJson(text: string): RawJson {
  JSON.parse(text);
  return new RawJson(text);
}

export function jsonTextOf(value: unknown): string {
  if (value instanceof RawJson) return value.text;
  if (value === undefined) throw new TypeError("the document is undefined: write null, or call delete");
  let text: string;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    if (!(error instanceof TypeError) || !/BigInt/.test(error.message)) throw error; // A document that contains itself.
    checkDocument(value);
    throw error;
  }
  checkDocument(value);
  return text;
}

/** The text of `value`, the last member of a receipt, with every digit. */
export function memberText(receipt: string): string | undefined {
  // The gateway writes the members before it, and a resource name cannot contain an unescaped
  // quote.
  const start = receipt.indexOf(',"value":');
  return start === -1 ? undefined : receipt.slice(start + ',"value":'.length, -1);
}
