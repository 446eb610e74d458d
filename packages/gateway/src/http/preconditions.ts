// The header fields a request makes its effect depend on: Fencing-Token, If-Match, If-None-Match
// and Idempotency-Key. Only their syntax is judged here; the store compares.
import { createHash } from "node:crypto";
import { type Expected, type Idempotency, MAX_TOKEN } from "../fence/verdict.js";
import { Problem } from "./problem.js";
import { type RequestHeaders, repeated } from "./request-context.js";
import type { Principal } from "./scopes.js";

export interface PresentedToken {
  readonly token: number;
  /**
   * Position of this write among the writes of one holder; null where the holder does not count its
   * writes.
   */
  readonly seq: number | null;
}

/**
 * The whole grammar, as in spec/wire.md and the OpenAPI document. Fifteen digits: exact in
 * JavaScript, Lua and bigint columns.
 */
export const FENCING_TOKEN = /^[1-9][0-9]{0,14}(;seq=[1-9][0-9]{0,14})?$/;

/**
 * `field` as read by request-context.ts: undefined when absent, with line feeds between fields that
 * came more than once. Strict, because a guessed token is a guessed fence (G2).
 */
export function parseFencingToken(field: string | undefined): PresentedToken | Problem {
  if (field === undefined) {
    return new Problem(
      "fencing_token_required",
      "This request changes a resource, so it needs the Fencing-Token header of the lease it is made under.",
    );
  }
  if (!FENCING_TOKEN.test(field)) return new Problem("fencing_token_malformed", describeToken(field));
  const separator = field.indexOf(";");
  if (separator === -1) return { token: Number(field), seq: null };
  return { token: Number(field.slice(0, separator)), seq: Number(field.slice(separator + ";seq=".length)) };
}

function describeToken(field: string): string {
  const times = repeated(field);
  if (times > 1) return `The Fencing-Token header was sent ${times} times; exactly one field is allowed.`;
  return "The Fencing-Token header must be a whole number from 1 to 999999999999999 without sign, space or leading zero, optionally followed by ;seq= and another such number.";
}

/** What a write requires of the stored revision; undefined when it requires nothing. */
export interface WriteCondition {
  readonly expected: Expected | undefined;
}

// A well-formed tag that this gateway never gave out matches no revision. It still goes to the
// store, because a stale token takes precedence over a mismatch.
export const NO_SUCH_REVISION = MAX_TOKEN;
const unconditional: WriteCondition = { expected: undefined };
const STRONG_TAG = /^"[\x21\x23-\x7e]*"$/;
const OWN_TAG = /^"([1-9][0-9]{0,14})"$/;
const TAG_LIST = /^(?:W\/)?"[\x21\x23-\x7e]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e]*")*$/;

export function formatETag(revision: number): string {
  return `"${revision}"`;
}

/**
 * A condition that is not known here is refused: a client that sent one would otherwise believe it
 * had been checked.
 */
export function parseWriteCondition(headers: RequestHeaders): WriteCondition | Problem {
  if (headers.ifMatch === undefined && headers.ifNoneMatch === undefined && headers.unsupportedCondition === undefined)
    return unconditional;
  if (headers.unsupportedCondition !== undefined) return unsupported(`The ${headers.unsupportedCondition} header is not supported`);
  if (headers.ifMatch !== undefined && headers.ifNoneMatch !== undefined)
    return unsupported("If-Match and If-None-Match cannot be combined");
  if (headers.ifMatch !== undefined) return parseIfMatch(headers.ifMatch);
  if (headers.ifNoneMatch === "*") return { expected: "absent" };
  return unsupported("On a write, If-None-Match is supported only as *");
}

/** The `ifMatch` member of an operation in a transaction follows the same rules as the header. */
export function parseIfMatch(field: string): WriteCondition | Problem {
  if (repeated(field) > 1) return unsupported("If-Match was sent more than once");
  if (field === "*") return { expected: "present" };
  if (!STRONG_TAG.test(field)) return unsupported('If-Match is supported only with one strong entity tag, such as "12"');
  const revision = OWN_TAG.exec(field)?.[1];
  return { expected: revision === undefined ? NO_SUCH_REVISION : Number(revision) };
}

/**
 * Whether a read would return what the client already has. Weak tags and lists are accepted here:
 * If-None-Match compares weakly, and caches send both.
 */
export function parseReadCondition(headers: RequestHeaders): ((revision: number) => boolean) | undefined | Problem {
  if (headers.unsupportedCondition !== undefined) return unsupported(`The ${headers.unsupportedCondition} header is not supported`);
  if (headers.ifMatch !== undefined) return unsupported("If-Match is supported only on writes");
  const field = headers.ifNoneMatch?.replaceAll("\n", ", ");
  if (field === undefined) return undefined;
  if (field === "*") return () => true;
  if (!TAG_LIST.test(field)) return unsupported("If-None-Match must hold entity tags or *");
  const tags = new Set(field.match(/"[^"]*"/g));
  return (revision) => tags.has(formatETag(revision));
}

function unsupported(what: string): Problem {
  return new Problem("precondition_unsupported", `${what}; it is refused instead of ignored, so that no write goes through unchecked.`);
}

const IDEMPOTENCY_KEY = /^[\x21-\x7e]{1,255}$/;

export function parseIdempotencyKey(field: string | undefined): string | undefined | Problem {
  if (field === undefined || IDEMPOTENCY_KEY.test(field)) return field;
  return new Problem("idempotency_key_malformed", "The Idempotency-Key header must be sent once, with 1 to 255 visible ASCII characters.");
}

/**
 * Keys belong to the caller that chose them. The token is part of the fingerprint: a retry under a
 * newer lease is another request, because answering it with the old success would report a fence
 * that was never raised (G1).
 */
export function idempotencyOf(principal: Principal, key: string, parts: readonly (string | number | null | undefined)[]): Idempotency {
  return { key: digest([principal.id, key]), fingerprint: digest(parts) };
}

function digest(parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("base64url");
}
