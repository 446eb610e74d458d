// The fencing token: an integer from 1 to 999 999 999 999 999, the range of an RFC 9651 Integer,
// exact in JavaScript, Lua and bigint columns.

/** The highest token there can be. */
export const MAX_TOKEN = 999_999_999_999_999;

/**
 * Of a fleet that begins, or has lost all memory: so many tokens for each millisecond of Unix time
 * are its floor. They reach MAX_TOKEN in the year 2286.
 */
export const TOKENS_PER_MS = 100;

const WRITTEN = /^[1-9][0-9]{0,14}$/;

/** Whether the value can be a fencing token. */
export function isToken(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= MAX_TOKEN;
}

/**
 * The token written as `text`, or undefined if that is not exactly how a token is written: no sign,
 * no blanks, no leading zeros, no exponent.
 */
export function parseToken(text: string): number | undefined {
  return WRITTEN.test(text) ? Number(text) : undefined;
}

/** The token in decimal digits. */
export function formatToken(token: number): string {
  if (!isToken(token)) throw new RangeError(`${String(token)} is not a fencing token: an integer from 1 to ${MAX_TOKEN}`);
  return String(token);
}

/**
 * Negative if `a` was issued before `b`, positive if after, 0 if they are the same: for sorting.
 */
export function compareTokens(a: number, b: number): number {
  return a - b;
}
