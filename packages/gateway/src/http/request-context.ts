// One request: its header fields as they came, and what has been learned about it so far.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestSpan } from "../store/spans.js";
import { noPrincipal, type Principal } from "./scopes.js";

export class RequestContext {
  readonly startedAt = performance.now();
  readonly requestId: string;
  /** The caller; `noPrincipal` until the credential has been checked. */
  principal: Principal = noPrincipal;
  /** Bytes of the body that count against the budget of the process until the answer is sent. */
  heldBytes = 0;
  /** For the log: what the request was about, once that is known. */
  resource: string | undefined;
  token: number | undefined;
  span: RequestSpan | undefined;

  constructor(
    readonly request: IncomingMessage,
    readonly response: ServerResponse,
    readonly headers: RequestHeaders,
  ) {
    this.requestId = requestIdOf(headers.requestId);
  }
}

const processName = Math.random().toString(36).slice(2, 8);
let requestCount = 0;
const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/**
 * The caller's own id where it is harmless, so that one id follows a request through several
 * services.
 */
function requestIdOf(presented: string | undefined): string {
  if (presented !== undefined && REQUEST_ID.test(presented)) return presented;
  requestCount += 1;
  return `${processName}-${requestCount.toString(36)}`;
}

export interface RequestHeaders {
  host: string | undefined;
  /** A proxy says that it passed the request on. */
  forwarded: boolean;
  fencingToken: string | undefined;
  ifMatch: string | undefined;
  ifNoneMatch: string | undefined;
  /**
   * The lower-case name of a conditional header that would have to be honoured and is not known
   * here.
   */
  unsupportedCondition: string | undefined;
  idempotencyKey: string | undefined;
  authorization: string | undefined;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  contentLength: string | undefined;
  requestId: string | undefined;
  traceparent: string | undefined;
}

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

/**
 * One pass over the raw header lines. Node's own `headers` object joins some repeated fields with a
 * comma and keeps only the first of others, which would hide a second token or credential.
 */
export function readHeaders(rawHeaders: readonly string[]): RequestHeaders {
  const found: RequestHeaders = {
    host: undefined,
    forwarded: false,
    fencingToken: undefined,
    ifMatch: undefined,
    ifNoneMatch: undefined,
    unsupportedCondition: undefined,
    idempotencyKey: undefined,
    authorization: undefined,
    contentType: undefined,
    contentEncoding: undefined,
    contentLength: undefined,
    requestId: undefined,
    traceparent: undefined,
  };
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) keep(found, rawHeaders[at] as string, rawHeaders[at + 1] as string);
  return found;
}

function keep(found: RequestHeaders, name: string, value: string): void {
  switch (name.toLowerCase()) {
    case "host":
      found.host = join(found.host, value);
      break;
    case "forwarded":
    case "x-forwarded-for":
    case "x-real-ip":
      found.forwarded = true;
      break;
    case "fencing-token":
      found.fencingToken = join(found.fencingToken, value);
      break;
    case "authorization":
      found.authorization = join(found.authorization, value);
      break;
    case "content-type":
      found.contentType = join(found.contentType, value);
      break;
    case "content-encoding":
      found.contentEncoding = join(found.contentEncoding, value);
      break;
    case "content-length":
      found.contentLength = join(found.contentLength, value);
      break;
    case "if-match":
      found.ifMatch = join(found.ifMatch, value);
      break;
    case "if-none-match":
      found.ifNoneMatch = join(found.ifNoneMatch, value);
      break;
    case "if-modified-since":
    case "if-unmodified-since":
    case "if-range":
    case "if-schedule-tag-match":
    case "if":
      found.unsupportedCondition = name.toLowerCase();
      break;
    case "idempotency-key":
      found.idempotencyKey = join(found.idempotencyKey, value);
      break;
    case "x-request-id":
      found.requestId = join(found.requestId, value);
      break;
    case "traceparent":
      found.traceparent = join(found.traceparent, value);
      break;
  }
}

function join(before: string | undefined, value: string): string {
  return before === undefined ? value : before + FIELD_SEPARATOR + value;
}
