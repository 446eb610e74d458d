// The Fencing-Token header: one field, one token, at most one sequence number. Decides only the syntax; whether the token is high enough is the store's answer.
// Must not be lenient: a token that is guessed at is a fence that is guessed at (G2).
import { Problem } from "./problem.js";
import { repeated } from "./request-headers.js";

export interface PresentedToken {
  readonly token: number;
  /** Position of this write among the writes of one holder; null where the holder does not count its writes. */
  readonly seq: number | null;
}

/** The whole grammar, as it stands in spec/wire.md and in the OpenAPI document. Fifteen digits: exact in JavaScript, Lua and bigint columns alike. */
export const FENCING_TOKEN = /^[1-9][0-9]{0,14}(;seq=[1-9][0-9]{0,14})?$/;

/** `field` is the header as request-headers.ts read it: undefined when absent, with line feeds between fields when it came more than once. */
export function parseFencingToken(field: string | undefined): PresentedToken | Problem {
  if (field === undefined) {
    return new Problem(
      "fencing_token_required",
      "This request changes a resource, so it needs the Fencing-Token header of the lease it is made under.",
    );
  }
  if (!FENCING_TOKEN.test(field)) return new Problem("fencing_token_malformed", describe(field));
  const separator = field.indexOf(";");
  if (separator === -1) return { token: Number(field), seq: null };
  return { token: Number(field.slice(0, separator)), seq: Number(field.slice(separator + ";seq=".length)) };
}

export function formatFencingToken({ token, seq }: PresentedToken): string {
  return seq === null ? String(token) : `${token};seq=${seq}`;
}

function describe(field: string): string {
  const times = repeated(field);
  if (times > 1) return `The Fencing-Token header was sent ${times} times; exactly one field is allowed.`;
  return "The Fencing-Token header must be a whole number from 1 to 999999999999999 without sign, space or leading zero, optionally followed by ;seq= and another such number.";
}
