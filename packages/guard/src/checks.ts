// What a caller may pass as a token, a name or a text. Misuse is a RangeError or TypeError before
// any I/O; whatever passes here reaches Postgres.

/**
 * An integer from 1 to 999 999 999 999 999 (exact in JavaScript, Lua and int8). It is checked
 * again: anything else is a RangeError before any I/O.
 */
export type Token = number;

export const MAX_TOKEN = 999_999_999_999_999;

/** What the lock says about a token; `unreachable` when too few of its nodes answered. */
export type Issued = "issued" | "unissued" | "unreachable";
/**
 * Was this token, or a higher one, ever issued for this resource? What it throws is passed on.
 */
export type VerifyToken = (resource: string, token: Token) => Promise<Issued>;

/**
 * Lone surrogates would become U+FFFD on the way, so that two names become one; NUL cannot be
 * stored.
 */
const UNSTORABLE = /\p{Surrogate}|\0/u;
export const MAX_NAME_BYTES = 512;

export function checkToken(token: number): void {
  if (!isCount(token)) throw new RangeError(`a token is an integer from 1 to ${MAX_TOKEN}, not ${String(token)}`);
}

/** Tokens, sequence numbers and revisions have one range. */
export function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= MAX_TOKEN;
}

export function checkName(resource: string): void {
  checkText({ text: resource, what: "a resource name", maxBytes: MAX_NAME_BYTES });
}

export function isName(text: string): boolean {
  return text !== "" && Buffer.byteLength(text) <= MAX_NAME_BYTES && !UNSTORABLE.test(text);
}

export function checkText({ text, what, maxBytes }: { readonly text: string; readonly what: string; readonly maxBytes: number }): void {
  if (typeof text !== "string") throw new TypeError(`${what} is a string`);
  const bytes = Buffer.byteLength(text);
  if (bytes === 0 || bytes > maxBytes) throw new RangeError(`${what} has 1 to ${maxBytes} bytes, not ${bytes}`);
  if (UNSTORABLE.test(text)) throw new RangeError(`${what} contains NUL or half of a surrogate pair`);
}
