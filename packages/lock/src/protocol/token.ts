// The fencing token: an integer from 1 to 999 999 999 999 999, the range of an RFC 9651 Integer,
// exact in JavaScript, Lua and bigint columns.

/** The highest token there can be. */
export const MAX_TOKEN = 999_999_999_999_999;

/**
 * Of a fleet that begins, or has lost all memory: so many tokens for each millisecond of Unix time
 * are its floor. They reach MAX_TOKEN in the year 2286.
 */
export const TOKENS_PER_MS = 100;

/**
 * How fast the least token that a locker asks for rises: half of what keeps below the wall clock.
 */
const LEAST_PER_MS = TOKENS_PER_MS / 2;
const LEAST_FOR_MS = 1_000;

/**
 * The least token that acquisitions ask for where a resource has no counter: the highest that this
 * locker has heard of, and 50 for each millisecond since, a second at most. Of two acquisitions
 * whose requests reach the nodes in different orders, the later one is then answered alike by all,
 * and mostly the earlier one too.
 */
export class LeastToken {
  #highest = 0;
  #atMs = 0;

  /** 0 before any token was heard of. */
  at(nowMs: number): number {
    return this.#highest === 0 ? 0 : Math.min(MAX_TOKEN, Math.floor(this.#present(nowMs)));
  }

  hear(token: number, nowMs: number): void {
    this.#highest = this.#highest === 0 ? token : Math.max(token, this.#present(nowMs));
    this.#atMs = nowMs;
  }

  #present(nowMs: number): number {
    return this.#highest + LEAST_PER_MS * Math.min(nowMs - this.#atMs, LEAST_FOR_MS);
  }
}

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
