// The number that a lease carries, and who can say whether it was ever issued.

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
