// From the store's verdict to the answer on the wire: what each verdict is in HTTP, and how a
// successful answer is written. An unknown outcome is never answered as a refusal, and a refusal
// never as unknown (G3). JSON arrives here as finished text; a document is never parsed and printed
// again.
import type { ServerResponse } from "node:http";
import type { Accepted, Refused, Unavailable, Undecided, Verdict, WriteOperation } from "../fence/verdict.js";
import { endResponse } from "./connection-state.js";
import { formatETag } from "./preconditions.js";
import { Problem, success } from "./problem.js";

/** What the ETag and Fencing-Token headers say, and further headers as name, value, name, value. */
export interface Stored {
  readonly rev?: number | undefined;
  readonly token?: number | undefined;
  readonly headers?: readonly string[] | undefined;
}

const nothingStored: Stored = {};

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

export const replayedHeader = ["Idempotent-Replayed", "true"] as const;

/**
 * Whether the caller may see the document: a credential that may only write must not learn it from
 * an empty patch.
 */
export type Visibility = "may_read" | "must_not_read";

export function acceptedAnswer(accepted: Accepted, op: WriteOperation, visibility: Visibility): Answer {
  const stored = { rev: accepted.rev, token: accepted.token, headers: accepted.replayed ? replayedHeader : undefined };
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
    case "idempotency_in_flight":
    case "idempotency_key_reused":
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
  contention: "The write lost a race in the database too often. Nothing was applied; it can be sent again.",
} as const;

/** Without the members that are undefined. */
function given<T extends object>(facts: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

export function undecidedProblem(undecided: Undecided): Problem {
  switch (undecided.kind) {
    case "idempotency_in_flight":
      return new Problem("idempotency_in_flight", "The first request with this Idempotency-Key has not been answered yet.", {
        retryAfterSeconds: 1,
      });
    case "idempotency_key_reused":
      return new Problem("idempotency_key_reused", "This Idempotency-Key was used for a different request.");
    case "unavailable":
      return unavailableProblem(undecided);
    case "outcome_unknown":
      return new Problem(
        "outcome_unknown",
        `${unknownBecause[undecided.reason]} Retry with the same token and the same seq or Idempotency-Key.`,
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
