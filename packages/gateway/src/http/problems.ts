// The list of problems: every refusal by its stable code, with its HTTP status and title, and how it
// is written to the wire (RFC 9457). No other file knows the status of a refusal. A code never
// changes its status, and where one status stands for two client reactions, the codes differ.
import type { ServerResponse } from "node:http";
import { sendBody } from "./connection-state.js";

/** Status, title, and the headers that say more, besides the id of the request. */
const problems = {
  request_malformed: [400, "The request is not valid HTTP"],
  fencing_token_malformed: [400, "The fencing token is malformed"],
  resource_name_invalid: [400, "The resource name is invalid"],
  json_invalid: [400, "The body is not acceptable JSON"],
  query_invalid: [400, "The query is invalid"],
  precondition_unsupported: [400, "The condition is not supported"],
  unauthenticated: [401, "Authentication is required", "WWW-Authenticate"],
  forbidden_scope: [403, "The credential does not allow this"],
  fencing_token_unissued: [403, "The lock never issued this token"],
  not_found: [404, "The resource has no document", "Fencing-Token"],
  route_not_found: [404, "There is no such route"],
  method_not_allowed: [405, "The method is not allowed here", "Allow"],
  request_timeout: [408, "The request took too long to arrive"],
  sequence_out_of_order: [409, "The sequence number does not rise", "ETag"],
  contention: [409, "The database could not order this write in time", "Retry-After"],
  fence_unchanged: [409, "The fence is already there", "Fencing-Token"],
  fencing_token_stale: [412, "A newer holder has written: this lease is lost", "Fencing-Token"],
  etag_mismatch: [412, "The resource has changed", "ETag"],
  body_too_large: [413, "The body is too large"],
  document_too_large: [413, "The document would be too large"],
  answer_too_large: [413, "The answer would be too large"],
  media_type_unsupported: [415, "The media type is not supported", "Accept-Encoding", "Accept-Patch"],
  expectation_failed: [417, "The expectation cannot be met"],
  fencing_token_required: [428, "A fencing token is required"],
  rate_limited: [429, "Too many requests", "Retry-After"],
  headers_too_many: [431, "Too many or too large header fields"],
  internal: [500, "The gateway failed"],
  unavailable: [503, "The store cannot be reached", "Retry-After"],
  verification_unavailable: [503, "The lock cannot be asked whether it issued this token", "Retry-After"],
  outcome_unknown: [504, "Whether the write was applied is not known"],
} as const satisfies Record<string, readonly [status: number, title: string, ...headers: string[]]>;

export type ProblemCode = keyof typeof problems;
export const problemCodes = Object.keys(problems) as ProblemCode[];

/** What a client can act on beyond the code. Never a key or a document. */
type ProblemFacts = Partial<{
  readonly resource: string | undefined;
  readonly presentedToken: number | undefined;
  readonly currentToken: number | undefined;
  readonly currentSeq: number | undefined;
  readonly currentETag: string | undefined;
  /** Of the document that would have been stored. */
  readonly documentBytes: number | undefined;
  readonly limitBytes: number | undefined;
  /** Whether the request may have changed anything. */
  readonly outcome: "not_applied" | "unknown" | undefined;
  /** Which operation of a transaction, counted from 0. */
  readonly operation: number | undefined;
  /** Of a transaction that was sent before: the stored revision of each operation's resource. */
  readonly currentRevs: readonly number[] | undefined;
  readonly allow: string | undefined;
  readonly retryAfterSeconds: number | undefined;
}>;

export class Problem {
  constructor(
    readonly code: ProblemCode,
    readonly detail: string,
    readonly facts: ProblemFacts = {},
  ) {}

  get status(): number {
    return problems[this.code][0];
  }

  get title(): string {
    return problems[this.code][1];
  }
}

export function statusOf(code: ProblemCode): number {
  return problems[code][0];
}

/** Which of its header fields say something of this problem. */
export function headersOf(code: ProblemCode): readonly string[] {
  return problems[code].slice(2) as string[];
}

/** Nothing was applied, and another try may pass. */
export function notApplied(code: ProblemCode, detail: string, facts: ProblemFacts = {}): Problem {
  return new Problem(code, detail, { ...facts, outcome: "not_applied", retryAfterSeconds: facts.retryAfterSeconds ?? 1 });
}

/** The members of the problem document, in the order they are written. */
export function problemDocument(problem: Problem, requestId: string): Record<string, unknown> {
  const { allow: _allow, retryAfterSeconds: _retry, ...facts } = problem.facts;
  return {
    type: `urn:palisade:problem:${problem.code}`,
    title: problem.title,
    status: problem.status,
    code: problem.code,
    detail: problem.detail,
    ...facts,
    requestId,
  };
}

function problemHeaders(problem: Problem, body: string): Record<string, string | number> {
  const headers: Record<string, string | number> = {
    "Content-Type": "application/problem+json",
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
  };
  if (problem.facts.allow !== undefined) headers.Allow = problem.facts.allow;
  if (problem.facts.retryAfterSeconds !== undefined) headers["Retry-After"] = problem.facts.retryAfterSeconds;
  if (problem.facts.currentETag !== undefined) headers.ETag = problem.facts.currentETag;
  if (problem.facts.currentToken !== undefined) headers["Fencing-Token"] = problem.facts.currentToken;
  if (problem.code === "unauthenticated") headers["WWW-Authenticate"] = 'Bearer realm="palisade"';
  if (problem.code === "media_type_unsupported") {
    headers["Accept-Encoding"] = "identity";
    headers["Accept-Patch"] = "application/merge-patch+json";
  }
  return headers;
}

export function sendProblem(response: ServerResponse, problem: Problem, requestId: string): void {
  const body = JSON.stringify(problemDocument(problem, requestId));
  const headers = problemHeaders(problem, body);
  headers["X-Request-Id"] = requestId;
  response.writeHead(problem.status, headers);
  sendBody(response, body);
}

/** The same answer as bytes, for a connection whose bytes never became a request. */
export function rawProblem(problem: Problem, requestId: string): string {
  const body = JSON.stringify(problemDocument(problem, requestId));
  const all = { ...problemHeaders(problem, body), "X-Request-Id": requestId };
  const headers = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} Refused\r\n${headers.join("")}Connection: close\r\n\r\n${body}`;
}
