// One request: its header fields as they came, what they demand, the resource it names, and what has
// been learned about it so far.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import { type Expected, MAX_TOKEN } from "../fence/verdict.js";
import type { RequestSpan } from "../store/spans.js";
import { formatETag } from "./answer.js";
import { type Action, authorize, noPrincipal, type Principal, parseResourceName } from "./names.js";
import { Problem } from "./problems.js";
import type { Held } from "./sending.js";

export class RequestContext {
  readonly startedAt = performance.now();
  readonly headers: RequestHeaders;
  readonly requestId: string;
  /** The caller; `noPrincipal` until the credential has been checked. */
  principal: Principal = noPrincipal;
  /** Bytes of the body that count against the budget of the process until the answer is sent. */
  heldBytes = 0;
  /** What the answer is made of, where it counts before it is sent. */
  held: Held | undefined;
  /** What the request is about: empty until that is known. */
  resource = "";
  token: number | undefined;
  span: RequestSpan | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
  ) {
    this.headers = readHeaders(request.rawHeaders);
    this.requestId = requestIdOf(this.headers.requestId);
  }
}

const processName = Math.random().toString(36).slice(2, 8);
let requestCount = 0;
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * The caller's own id where it is harmless, so that one id follows a request through several
 * services.
 */
export function requestIdOf(presented: string | undefined): string {
  if (presented !== undefined && REQUEST_ID.test(presented)) return presented;
  requestCount += 1;
  return `${processName}-${requestCount.toString(36)}`;
}

/** The header fields that count here, each undefined where it was not sent. */
export class RequestHeaders {
  host: string | undefined;
  fencingToken: string | undefined;
  ifMatch: string | undefined;
  ifNoneMatch: string | undefined;
  authorization: string | undefined;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  contentLength: string | undefined;
  requestId: string | undefined;
  traceparent: string | undefined;
  /** A proxy says that it passed the request on. */
  forwarded = false;
  /** The lower-case name of a conditional header that would have to be honoured and is not known here. */
  unsupportedCondition: string | undefined;
  hasIdempotencyKey = false;
}

/** By their lower-case names. */
const fields: ReadonlyMap<string, keyof RequestHeaders> = new Map<string, keyof RequestHeaders>([
  ["host", "host"],
  ["fencing-token", "fencingToken"],
  ["if-match", "ifMatch"],
  ["if-none-match", "ifNoneMatch"],
  ["authorization", "authorization"],
  ["content-type", "contentType"],
  ["content-encoding", "contentEncoding"],
  ["content-length", "contentLength"],
  ["x-request-id", "requestId"],
  ["traceparent", "traceparent"],
  ["forwarded", "forwarded"],
  ["x-forwarded-for", "forwarded"],
  ["x-real-ip", "forwarded"],
  ["if-modified-since", "unsupportedCondition"],
  ["if-unmodified-since", "unsupportedCondition"],
  ["if-range", "unsupportedCondition"],
  ["if-schedule-tag-match", "unsupportedCondition"],
  ["if", "unsupportedCondition"],
  // A part of a document: the rest of it would be lost (RFC 9110, 14.5).
  ["content-range", "unsupportedCondition"],
  ["idempotency-key", "hasIdempotencyKey"],
]);

/**
 * Node silently drops header lines beyond its own limit of 2 000, so a request with that many is
 * refused before any of them is believed.
 */
const MAX_HEADER_LINES = 2_000;

// The fields of a header that came more than once are joined by a line feed: no header value can
// contain one, so every strict parser refuses the result.
const FIELD_SEPARATOR = "\n";

export function repeated(value: string): number {
  return value.split(FIELD_SEPARATOR).length;
}

export function tooManyHeaders(request: IncomingMessage): boolean {
  return request.rawHeaders.length >= MAX_HEADER_LINES * 2;
}

/** A request of HTTP/1.1 has exactly one Host field (RFC 9112, 3.2). */
export function hostFault({ request, headers: { host } }: RequestContext): Problem | undefined {
  if (host === undefined ? request.httpVersion !== "1.1" : !host.includes(FIELD_SEPARATOR)) return undefined;
  return new Problem("request_malformed", `The request has ${host === undefined ? "no Host field" : "more than one Host field"}.`);
}

/**
 * One pass over the raw header lines. Node's own `headers` object joins some repeated fields with a
 * comma and keeps only the first of others, which would hide a second token or credential.
 */
export function readHeaders(rawHeaders: readonly string[]): RequestHeaders {
  const found = new RequestHeaders();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) keep(found, (rawHeaders[at] as string).toLowerCase(), rawHeaders[at + 1] as string);
  return found;
}

function keep(found: RequestHeaders, name: string, value: string): void {
  const field = fields.get(name);
  if (field === undefined) return;
  if (field === "unsupportedCondition") found.unsupportedCondition = name;
  else if (field === "forwarded" || field === "hasIdempotencyKey") found[field] = true;
  else {
    const before = found[field];
    found[field] = before === undefined ? value : before + FIELD_SEPARATOR + value;
  }
}

// The header fields a request makes its effect depend on: Fencing-Token, If-Match and
// If-None-Match. Only their syntax is judged here; the store compares.

export interface PresentedToken {
  readonly token: number;
  /**
   * Position of this write among the writes of one holder; undefined where the holder does not count
   * its writes.
   */
  readonly seq: number | undefined;
}

/**
 * The whole grammar, as in spec/wire.md and the OpenAPI document. Fifteen digits: exact in
 * JavaScript, Lua and bigint columns.
 */
export const FENCING_TOKEN = /^[1-9][0-9]{0,14}(;seq=[1-9][0-9]{0,14})?$/;

/**
 * `field` as readHeaders read it: undefined when absent, with line feeds between fields that
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
  if (separator === -1) return { token: Number(field), seq: undefined };
  return { token: Number(field.slice(0, separator)), seq: Number(field.slice(separator + ";seq=".length)) };
}

function describeToken(field: string): string {
  const times = repeated(field);
  if (times > 1) return `The Fencing-Token header was sent ${times} times; exactly one field is allowed.`;
  return "The Fencing-Token header must be a whole number from 1 to 999999999999999 without sign, space or leading zero, optionally followed by ;seq= and another such number.";
}

// A well-formed tag that this gateway never gave out matches no revision. It still goes to the
// store, because a stale token takes precedence over a mismatch.
export const NO_SUCH_REVISION = MAX_TOKEN;
const STRONG_TAG = /^"[\x21\x23-\x7e]*"$/;
const OWN_TAG = /^"([1-9][0-9]{0,14})"$/;
const TAG_LIST = /^(?:W\/)?"[\x21\x23-\x7e]*"(?:[ \t]*,[ \t]*(?:W\/)?"[\x21\x23-\x7e]*")*$/;

const NUMBER_IT =
  "Idempotency-Key is not supported: number the write, as in Fencing-Token: 33;seq=1, and repeat it with the same number; it is applied once.";

/**
 * What a write requires of the stored revision; undefined when it requires nothing. A condition that
 * is not known here is refused: a client that sent one would otherwise believe it had been checked.
 */
export function parseWriteCondition(headers: RequestHeaders): Expected | undefined | Problem {
  if (headers.hasIdempotencyKey) return new Problem("precondition_unsupported", NUMBER_IT);
  if (headers.ifMatch === undefined && headers.ifNoneMatch === undefined && headers.unsupportedCondition === undefined) return undefined;
  if (headers.unsupportedCondition !== undefined) return unsupported(`The ${headers.unsupportedCondition} header is not supported`);
  if (headers.ifMatch !== undefined && headers.ifNoneMatch !== undefined)
    return unsupported("If-Match and If-None-Match cannot be combined");
  if (headers.ifMatch !== undefined) return parseIfMatch(headers.ifMatch);
  if (headers.ifNoneMatch === "*") return "absent";
  return unsupported("On a write, If-None-Match is supported only as *");
}

/** The `ifMatch` member of an operation in a transaction follows the same rules as the header. */
export function parseIfMatch(field: string): Expected | Problem {
  if (repeated(field) > 1) return unsupported("If-Match was sent more than once");
  if (field === "*") return "present";
  if (!STRONG_TAG.test(field)) return unsupported('If-Match is supported only with one strong entity tag, such as "12"');
  const revision = OWN_TAG.exec(field)?.[1];
  return revision === undefined ? NO_SUCH_REVISION : Number(revision);
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

// Query strings, read strictly: form encoding, UTF-8, every parameter known and given once.
// Express' own parser makes arrays and objects of odd names, so it is not used.

export function parseQuery<S extends z.ZodType>(target: string, schema: S): z.output<S> | Problem {
  const start = target.indexOf("?");
  const parameters: Record<string, string> = {};
  for (const pair of start === -1 ? [] : target.slice(start + 1).split("&")) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals === -1 ? pair : pair.slice(0, equals));
    const value = decode(equals === -1 ? "" : pair.slice(equals + 1));
    if (name === undefined || value === undefined) return new Problem("query_invalid", "The query does not decode to UTF-8 text.");
    if (Object.hasOwn(parameters, name)) return new Problem("query_invalid", "A query parameter was given twice.");
    Object.defineProperty(parameters, name, { value, enumerable: true });
  }
  const parsed = schema.safeParse(parameters);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  return new Problem(
    "query_invalid",
    `The query parameter ${issue?.path.map(String).join(".") || "list"} is not understood: ${issue?.message ?? ""}`,
  );
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

// From the raw request target to the resource it names. req.params, req.path and req.query are not
// used: they are decoded by other rules than a resource name.

/** A client of a proxy may send the whole URL; the path is what counts, here with its query. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  if (url.startsWith("/")) return url;
  const authority = url.indexOf("//");
  const path = authority === -1 ? -1 : url.indexOf("/", authority + 2);
  return path === -1 ? "/" : url.slice(path);
}

/** A path in which a resource is named: `/v1/resources/{resource}/seal`. */
export interface NamedPath {
  readonly path: string;
  /** What the caller must be allowed to do with the resource. */
  readonly needs: Action;
  /** Parameters follow the name after a "?", which otherwise belongs to it. */
  readonly query?: unknown;
}

/**
 * Notes the resource that the path names, and refuses a caller who may not do with it what the route
 * needs. All that stands in place of {resource} is the name, even a "?" where the route has no query:
 * it would otherwise be cut off silently.
 */
export function readTarget(context: RequestContext, { path, needs, query }: NamedPath): Problem | undefined {
  const target = pathOf(context.request);
  const suffix = path.length - 1 - path.indexOf("}");
  const end = query === undefined ? -1 : target.indexOf("?");
  const resource = parseResourceName(target.slice(path.indexOf("{"), end === -1 ? target.length - suffix : end));
  if (resource instanceof Problem) return resource;
  context.resource = resource;
  return authorize(context.principal, needs, resource);
}
