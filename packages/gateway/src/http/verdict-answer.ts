// Verdict to HTTP: every answer the store can give, in the words of the contract. Pure; adds no judgement of its own.
// Must not turn "unknown" into "refused" or the other way round (G3).
import type { Accepted, Refused, Unavailable, Undecided } from "../guard/verdict.js";
import { Answer } from "./answer.js";
import { formatETag } from "./etag.js";
import { Problem, success } from "./problem.js";

const replayedHeader = ["Idempotent-Replayed", "true"] as const;

/** PUT and DELETE say what is stored now; PATCH and seal also return the document, as the text Postgres gave. */
export function acceptedAnswer(accepted: Accepted, op: "put" | "patch" | "delete" | "seal"): Answer {
  const extra = accepted.replayed ? replayedHeader : undefined;
  if (op === "delete") return new Answer(success.noContent, undefined, accepted.rev, accepted.token, extra);
  const status = accepted.created && op !== "seal" ? success.created : success.ok;
  return new Answer(status, receipt(accepted, op), accepted.rev, accepted.token, extra);
}

export function receipt(accepted: Accepted, op: "put" | "patch" | "delete" | "seal"): string {
  const start = `{"resource":${JSON.stringify(accepted.resource)},"token":${accepted.token},"rev":${accepted.rev}`;
  if (op === "patch" || op === "seal") return `${start},"value":${accepted.value ?? "null"}}`;
  return `${start}}`;
}

export function refusalProblem(refused: Refused): Problem {
  const { resource } = refused;
  switch (refused.kind) {
    case "stale":
      return new Problem(
        "fencing_token_stale",
        "A newer holder has raised the fence of this resource. The lease behind this token is lost for good; do not retry.",
        {
          resource,
          presentedToken: refused.presentedToken,
          ...(refused.currentToken === undefined ? {} : { currentToken: refused.currentToken }),
        },
      );
    case "etag_mismatch":
      return new Problem(
        "etag_mismatch",
        "The resource is not in the state the request insists on. The lease is still good: read again and retry.",
        {
          resource,
          ...(refused.currentRev === null || refused.currentRev === 0 ? {} : { currentETag: formatETag(refused.currentRev) }),
        },
      );
    case "sequence_out_of_order":
      return new Problem("sequence_out_of_order", "A write of this holder with the same or a higher sequence number was stored before.", {
        resource,
        ...(refused.currentSeq === undefined ? {} : { currentSeq: refused.currentSeq }),
      });
    case "not_found":
      return new Problem("not_found", "The resource has no document to change.", { resource });
    case "value_rejected":
      return new Problem("json_invalid", `The database cannot keep this document: ${refused.message}`, { resource });
    case "token_unissued":
      return new Problem("fencing_token_unissued", "The lock never issued this token for this resource: it is forged or corrupt.", {
        resource,
        presentedToken: refused.presentedToken,
      });
    case "verification_unavailable":
      return new Problem(
        "verification_unavailable",
        "This token would raise the fence, and too few of the lock's nodes answered whether it was issued.",
        {
          resource,
          presentedToken: refused.presentedToken,
          outcome: "not_applied",
          retryAfterSeconds: 1,
        },
      );
    case "contention":
      return new Problem("contention", "The write lost a race in the database too often. Nothing was applied; it can be sent again.", {
        resource,
        outcome: "not_applied",
        retryAfterSeconds: 1,
      });
  }
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
  refused: "The database refuses connections.",
  not_durable: "The database does not give the durability this gateway is configured for.",
} as const;

export function unavailableProblem(unavailable: Unavailable): Problem {
  return new Problem("unavailable", `${unavailableBecause[unavailable.reason]} Nothing was applied.`, {
    outcome: "not_applied",
    retryAfterSeconds: Math.max(1, Math.ceil((unavailable.retryAfterMs ?? 0) / 1_000)),
  });
}
