// From the store's verdict to the answer on the wire: what each verdict is in HTTP, and how a
// successful answer is written. An unknown outcome is never answered as a refusal, and a refusal
// never as unknown (G3). JSON arrives here as finished text; a document is never parsed and printed
// again.
import type { ServerResponse } from "node:http";
import type { Accepted, Refused, Unavailable, Undecided, Verdict, WriteOperation } from "../fence/verdict.js";
import { endResponse } from "./connection-state.js";

/** What the ETag and Fencing-Token headers say, and further headers as name, value, name, value. */
export interface Stored {
  readonly rev?: number | undefined;
  readonly token?: number | undefined;
  readonly headers?: readonly string[] | undefined;
}

const nothingStored: Stored = {};

export function formatETag(revision: number): string {
  return `"${revision}"`;
}

export class Answer {
  constructor(
    readonly status: number,
    readonly body: string | undefined,
    readonly stored: Stored = nothingStored,
  ) {}
}

/** An answer without an end: whoever has begun it writes and ends it. */
export class EventStream {
  readonly status = success.ok;

  constructor(readonly begin: (response: ServerResponse) => void) {}
}

export function beginStream(response: ServerResponse, stream: EventStream, requestId: string): void {
  // The last one tells proxies not to gather it.
  const headers = ["X-Request-Id", requestId, "Cache-Control", "no-store", "Content-Type", "text/event-stream", "X-Accel-Buffering", "no"];
  response.writeHead(stream.status, headers);
  response.flushHeaders();
  stream.begin(response);
}

export function sendAnswer(response: ServerResponse, answer: Answer, requestId: string): void {
  const headers: string[] = ["X-Request-Id", requestId, "Cache-Control", "private, no-cache"];
  const { rev, token, headers: further } = answer.stored;
  // Revision 0 is a resource that was sealed and never written: it has a fence, but nothing an
  // entity tag could name.
  if (rev !== undefined && rev > 0) headers.push("ETag", formatETag(rev));
  if (token !== undefined) headers.push("Fencing-Token", String(token));
  if (further !== undefined) headers.push(...further);
  if (answer.body !== undefined) {
    headers.push("Content-Type", "application/json", "Content-Length", String(Buffer.byteLength(answer.body)));
  } else if (answer.status === success.ok) {
    headers.push("Content-Length", "0");
  }
  response.writeHead(answer.status, headers);
  endResponse(response, answer.body);
}

/**
 * Whether the caller may see the document: a credential that may only write must not learn it from
 * an empty patch.
 */
export type Visibility = "may_read" | "must_not_read";

export function acceptedAnswer(accepted: Accepted, op: WriteOperation, visibility: Visibility): Answer {
  const stored = { rev: accepted.rev, token: accepted.token };
  if (op === "delete") return new Answer(success.noContent, undefined, stored);
  const status = accepted.created && op !== "seal" ? success.created : success.ok;
  return new Answer(status, receipt(accepted, op, visibility), stored);
}

/** What is stored now. PATCH and seal add the document, as the text Postgres gave. */
export function receipt(accepted: Accepted, op: WriteOperation, visibility: Visibility): string {
  const start = `{"resource":${JSON.stringify(accepted.resource)},"token":${accepted.token},"rev":${accepted.rev}`;
  const shown = op === "seal" || (op === "patch" && visibility === "may_read");
  return shown && accepted.value !== undefined ? `${start},"value":${accepted.value ?? "null"}}` : `${start}}`;
}

export function verdictProblem(verdict: Exclude<Verdict, Accepted>): Problem {
  switch (verdict.kind) {
    case "unavailable":
    case "outcome_unknown":
      return undecidedProblem(verdict);
    default:
      return refusalProblem(verdict);
  }
}

export function refusalProblem(refused: Refused): Problem {
  const { resource } = refused;
  switch (refused.kind) {
    case "stale": {
      const { presentedToken, currentToken } = refused;
      const facts = currentToken === undefined ? { resource, presentedToken } : { resource, presentedToken, currentToken };
      return new Problem("fencing_token_stale", details.stale, facts);
    }
    case "etag_mismatch": {
      const currentETag = refused.currentRev === null || refused.currentRev === 0 ? undefined : formatETag(refused.currentRev);
      return new Problem("etag_mismatch", details.etag_mismatch, { resource, ...given({ currentETag }) });
    }
    case "sequence_out_of_order": {
      const { currentSeq, currentRev } = refused;
      const currentETag = currentRev === undefined ? undefined : formatETag(currentRev);
      return new Problem("sequence_out_of_order", details.sequence_out_of_order, { resource, ...given({ currentSeq, currentETag }) });
    }
    case "not_found":
      return new Problem("not_found", details.not_found, { resource });
    case "value_rejected":
      return new Problem("json_invalid", `The database cannot keep this document: ${refused.message}`, { resource });
    case "document_too_large": {
      const { bytes: documentBytes, limitBytes } = refused;
      return new Problem("document_too_large", `The document would have ${documentBytes} bytes; at most ${limitBytes} are stored.`, {
        resource,
        documentBytes,
        limitBytes,
      });
    }
    case "token_unissued":
      return new Problem("fencing_token_unissued", details.token_unissued, { resource, presentedToken: refused.presentedToken });
    case "verification_unavailable":
      return new Problem("verification_unavailable", details.verification_unavailable, {
        resource,
        presentedToken: refused.presentedToken,
        ...notApplied,
      });
    case "contention":
      return new Problem("contention", details.contention, { resource, ...notApplied });
  }
}

const notApplied = { outcome: "not_applied", retryAfterSeconds: 1 } as const;

const details = {
  stale: "A newer holder has raised the fence of this resource. The lease behind this token is lost for good; do not retry.",
  etag_mismatch: "The resource is not in the state the request insists on. The lease is still good: read again and retry.",
  sequence_out_of_order: "A write of this holder with the same or a higher sequence number was stored before.",
  not_found: "The resource has no document to change.",
  token_unissued: "The lock never issued this token for this resource: it is forged or corrupt.",
  verification_unavailable: "This token would raise the fence, and too few of the lock's nodes answered whether it was issued.",
  contention:
    "Another session held the row for too long, or the write lost races in the database too often. Nothing was applied; send it again.",
} as const;

/** Without the members that are undefined. */
function given<T extends object>(facts: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

export function undecidedProblem(undecided: Undecided): Problem {
  switch (undecided.kind) {
    case "unavailable":
      return unavailableProblem(undecided);
    case "outcome_unknown":
      return new Problem(
        "outcome_unknown",
        `${unknownBecause[undecided.reason]} A write with a seq can be sent again with the same token and the same seq.`,
        { outcome: "unknown" },
      );
  }
}

const unknownBecause = {
  connection_lost: "The connection to the database was lost while the write was under way; it may or may not be applied.",
  timed_out: "The database did not answer in time; the write may or may not be applied.",
  not_replicated: "The write was stored, but not confirmed by the synchronous standby; a failover may forget it.",
} as const;

const unavailableBecause = {
  overloaded: "Too many requests are waiting.",
  closing: "The gateway is shutting down.",
  unreachable: "The database cannot be reached.",
  read_only: "The database is read-only.",
  refused: "The database refused the statement or the connection.",
  not_recovered: "The database may have been restored from a backup, or the lock could not be asked; /ready says more.",
  not_durable: "The database does not give the durability this gateway is configured for.",
} as const;

export function unavailableProblem(unavailable: Unavailable): Problem {
  return new Problem("unavailable", `${unavailableBecause[unavailable.reason]} Nothing was applied.`, {
    outcome: "not_applied",
    retryAfterSeconds: Math.max(1, Math.ceil((unavailable.retryAfterMs ?? 0) / 1_000)),
  });
}

// Every refusal by its stable code, with its HTTP status, and how it is written to the wire (RFC
// 9457). No other file knows status numbers. A code never changes its status, and where one status
// stands for two client reactions, the codes differ.

export const success = { ok: 200, created: 201, noContent: 204, notModified: 304 } as const;

const problems = {
  request_malformed: [400, "The request is not valid HTTP"],
  fencing_token_malformed: [400, "The fencing token is malformed"],
  resource_name_invalid: [400, "The resource name is invalid"],
  json_invalid: [400, "The body is not acceptable JSON"],
  query_invalid: [400, "The query is invalid"],
  precondition_unsupported: [400, "The condition is not supported"],
  unauthenticated: [401, "Authentication is required"],
  forbidden_scope: [403, "The credential does not allow this"],
  fencing_token_unissued: [403, "The lock never issued this token"],
  not_found: [404, "The resource has no document"],
  route_not_found: [404, "There is no such route"],
  method_not_allowed: [405, "The method is not allowed here"],
  request_timeout: [408, "The request took too long to arrive"],
  sequence_out_of_order: [409, "The sequence number does not rise"],
  contention: [409, "The database could not order this write in time"],
  fence_unchanged: [409, "The fence is already there"],
  fencing_token_stale: [412, "A newer holder has written: this lease is lost"],
  etag_mismatch: [412, "The resource has changed"],
  body_too_large: [413, "The body is too large"],
  document_too_large: [413, "The document would be too large"],
  media_type_unsupported: [415, "The media type is not supported"],
  expectation_failed: [417, "The expectation cannot be met"],
  fencing_token_required: [428, "A fencing token is required"],
  rate_limited: [429, "Too many requests"],
  headers_too_many: [431, "Too many or too large header fields"],
  internal: [500, "The gateway failed"],
  unavailable: [503, "The store cannot be reached"],
  verification_unavailable: [503, "The lock cannot be asked whether it issued this token"],
  outcome_unknown: [504, "Whether the write was applied is not known"],
} as const satisfies Record<string, readonly [number, string]>;

export type ProblemCode = keyof typeof problems;
export const problemCodes = Object.keys(problems) as ProblemCode[];

/** What a client can act on beyond the code. Never a key or a document. */
interface ProblemFacts {
  readonly resource?: string;
  readonly presentedToken?: number;
  readonly currentToken?: number;
  readonly currentSeq?: number;
  readonly currentETag?: string;
  /** Of the document that would have been stored. */
  readonly documentBytes?: number;
  readonly limitBytes?: number;
  /** Whether the request may have changed anything. */
  readonly outcome?: "not_applied" | "unknown";
  /** Which operation of a transaction, counted from 0. */
  readonly operation?: number;
  /** Of a transaction that was sent before: the stored revision of each operation's resource. */
  readonly currentRevs?: readonly number[];
  readonly allow?: string;
  readonly retryAfterSeconds?: number;
}

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

/** The members of the problem document, in the order they are written. */
export function problemDocument(problem: Problem, requestId: string | undefined): Record<string, unknown> {
  const { allow: _allow, retryAfterSeconds: _retry, ...facts } = problem.facts;
  return {
    type: `urn:palisade:problem:${problem.code}`,
    title: problem.title,
    status: problem.status,
    code: problem.code,
    detail: problem.detail,
    ...facts,
    ...(requestId === undefined ? {} : { requestId }),
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
  endResponse(response, body);
}

/** The same answer as bytes, for a connection whose bytes never became a request. */
export function rawProblem(problem: Problem): string {
  const body = JSON.stringify(problemDocument(problem, undefined));
  const headers = Object.entries(problemHeaders(problem, body)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${problem.status} Refused\r\n${headers.join("")}Connection: close\r\n\r\n${body}`;
}

// One result for all who ask while it is awaited, and at most one in each interval. It is never
// older than the question: who asks too soon after the last one waits for the next.

export class SharedAnswer<T> {
  readonly #make: () => T | Promise<T>;
  readonly #intervalMs: number;
  #madeAt = Number.NEGATIVE_INFINITY;
  #last: Promise<T> | undefined;
  #next: Promise<T> | undefined;

  constructor(make: () => T | Promise<T>, intervalMs: number) {
    this.#make = make;
    this.#intervalMs = intervalMs;
  }

  get(): Promise<T> {
    this.#next ??= this.#whenDue();
    return this.#next;
  }

  async #whenDue(): Promise<T> {
    await this.#last?.catch(() => {}); // Whoever asked for it hears of its failure.
    const waitMs = this.#madeAt + this.#intervalMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    this.#last = this.#next;
    this.#next = undefined;
    this.#madeAt = performance.now();
    return this.#make();
  }
}
