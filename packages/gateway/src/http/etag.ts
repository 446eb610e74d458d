// Entity tags and the two conditional headers that are honoured. An ETag is the stored revision in quotes, always strong. Decides only the syntax; the store compares.
// Must not ignore a condition it does not know: a client that sent one would believe it had been checked.
import type { Expected } from "../fence/verdict.js";
import { Problem } from "./problem.js";
import { type RequestHeaders, repeated } from "./request-headers.js";

/** What a write insists on; undefined when it insists on nothing. */
export interface WriteCondition {
  readonly expected: Expected | undefined;
}

// A well-formed tag that this gateway never gave out matches no revision. It still goes to the store, because a stale token beats a mismatch.
const NO_SUCH_REVISION = 999_999_999_999_999;
const unconditional: WriteCondition = { expected: undefined };
const STRONG_TAG = /^"[\x21\x23-\x7e]*"$/;
const OWN_TAG = /^"([1-9][0-9]{0,14})"$/;
const TAG_LIST = /^(?:W\/)?"[\x21\x23-\x7e]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e]*")*$/;

export function formatETag(revision: number): string {
  return `"${revision}"`;
}

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

/** Answers whether a read would return what the client already has. Weak tags and lists are understood here: If-None-Match compares weakly, and caches send both. */
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
