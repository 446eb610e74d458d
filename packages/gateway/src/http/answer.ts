// From the store's verdict to the answer on the wire: what each verdict is in HTTP, and how a
// successful answer is written. An unknown outcome is never answered as a refusal, and a refusal
// never as unknown (G3). JSON arrives here as finished text; a document is never parsed and printed
// again.
import type { ServerResponse } from "node:http";
import type { Accepted, Refused, Undecided, WriteOperation } from "../fence/verdict.js";
import { SLICE_BYTES, sendBody } from "./connection-state.js";
import { notApplied, Problem } from "./problems.js";

export const success = { ok: 200, created: 201, noContent: 204, notModified: 304 } as const;

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

/** Text, or parts that are sent one after another: a document that several answers share is one. */
type Body = string | readonly Buffer[];

export class Answer {
  constructor(
    readonly status: number,
    readonly body: Body | undefined,
    readonly stored: Stored = nothingStored,
  ) {}

  /** Sent in its place where it has no room. */
  shorter: Answer | Problem | undefined;

  orElse(shorter: Answer | Problem | undefined): this {
    this.shorter = shorter;
    return this;
  }
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
  const body = typeof answer.body === "string" && answer.body.length > SLICE_BYTES ? [Buffer.from(answer.body)] : answer.body;
  if (body !== undefined) {
    headers.push("Content-Type", "application/json", "Content-Length", String(bytesOf(body)));
  } else if (answer.status === success.ok) {
    headers.push("Content-Length", "0");
  }
  response.writeHead(answer.status, headers);
  sendBody(response, body);
}

export function bytesOf(body: Body): number {
  return typeof body === "string" ? Buffer.byteLength(body) : body.reduce((sum, part) => sum + part.length, 0);
}

/**
 * What is stored after a write or seal. PATCH and seal add the document, as the text Postgres gave;
 * a credential that may only write must not learn it from an empty patch.
 */
export function receipt(accepted: Accepted, op: WriteOperation, mayRead: boolean): string {
  const start = receiptStart(accepted);
  const shown = op === "seal" || (op === "patch" && mayRead);
  return shown && accepted.value !== undefined ? `${start},"value":${accepted.value ?? "null"}}` : `${start}}`;
}

function receiptStart({ resource, token, rev }: Accepted): string {
  return `{"resource":${JSON.stringify(resource)},"token":${token},"rev":${rev}`;
}

export function acceptedAnswer(accepted: Accepted, op: WriteOperation, mayRead: boolean): Answer {
  if (op === "delete") return new Answer(success.noContent, undefined, accepted);
  const status = accepted.created && op !== "seal" ? success.created : success.ok;
  const shorter = op === "put" ? undefined : op === "seal" ? unread : new Answer(status, `${receiptStart(accepted)}}`, accepted);
  return new Answer(status, receipt(accepted, op, mayRead), accepted).orElse(shorter);
}

/** The answer to a seal whose document was read by itself. */
export function sealedAnswer(accepted: Accepted, document: Buffer): Answer {
  return new Answer(success.ok, [Buffer.from(`${receiptStart(accepted)},"value":`), document, Buffer.from("}")], accepted);
}

/** A fence was raised, and what stood behind it then cannot be shown. */
export const unread = new Problem(
  "outcome_unknown",
  "The fence was raised, and the document behind it could not be read or not be sent. Seal again.",
  { outcome: "unknown" },
);

/** Every verdict but an accepted write, as its problem. */
export function problemOf(verdict: Refused | Undecided): Problem {
  const { kind } = verdict;
  switch (kind) {
    case "stale": {
      const { resource, presentedToken, currentToken } = verdict;
      return new Problem("fencing_token_stale", details.stale, { resource, presentedToken, currentToken });
    }
    case "etag_mismatch":
      return new Problem(kind, details[kind], { resource: verdict.resource, currentETag: etagOf(verdict.currentRev || undefined) });
    case "sequence_out_of_order": {
      const { resource, currentSeq, currentRev } = verdict;
      return new Problem(kind, details[kind], { resource, currentSeq, currentETag: etagOf(currentRev) });
    }
    case "not_found":
      return new Problem(kind, details[kind], { resource: verdict.resource });
    case "value_rejected":
      return new Problem("json_invalid", `The database cannot keep this document: ${verdict.message}`, { resource: verdict.resource });
    case "document_too_large": {
      const { resource, bytes: documentBytes, limitBytes } = verdict;
      const detail = `The document would have ${documentBytes} bytes; at most ${limitBytes} are stored.`;
      return new Problem(kind, detail, { resource, documentBytes, limitBytes });
    }
    case "answer_too_large":
      return new Problem(kind, details[kind], { resource: verdict.resource });
    case "token_unissued": {
      const { resource, presentedToken } = verdict;
      return new Problem("fencing_token_unissued", details[kind], { resource, presentedToken });
    }
    case "verification_unavailable": {
      const { resource, presentedToken } = verdict;
      return notApplied(kind, details[kind], { resource, presentedToken });
    }
    case "contention":
      return notApplied(kind, details[kind], { resource: verdict.resource });
    case "unavailable": {
      const retryAfterSeconds = Math.max(1, Math.ceil((verdict.retryAfterMs ?? 0) / 1_000));
      return notApplied(kind, `${unavailableBecause[verdict.reason]} Nothing was applied.`, { retryAfterSeconds });
    }
    case "outcome_unknown": {
      const advice = "A write with a seq can be sent again with the same token and the same seq.";
      return new Problem(kind, `${unknownBecause[verdict.reason]} ${advice}`, { outcome: "unknown" });
    }
  }
}

function etagOf(revision: number | undefined): string | undefined {
  return revision === undefined ? undefined : formatETag(revision);
}

const details = {
  stale: "A newer holder has raised the fence of this resource. The lease behind this token is lost for good; do not retry.",
  etag_mismatch: "The resource is not in the state the request insists on. The lease is still good: read again and retry.",
  sequence_out_of_order: "A write of this holder with the same or a higher sequence number was stored before.",
  not_found: "The resource has no document to change.",
  answer_too_large: "The documents of the resources that this transaction seals are too large for one answer: seal fewer at a time.",
  token_unissued: "The lock never issued this token for this resource: it is forged or corrupt.",
  verification_unavailable: "This token would raise the fence, and too few of the lock's nodes answered whether it was issued.",
  contention:
    "Another session held the row for too long, or the write lost races in the database too often. Nothing was applied; send it again.",
} as const;

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
