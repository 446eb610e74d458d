// Every reason a request may end without success: the codes of the gateway's problems, and those that arise on this side of the wire.

/** From the gateway; a unit test holds this list against the server's. */
export const problemCodes = [
  "request_malformed",
  "fencing_token_malformed",
  "resource_name_invalid",
  "json_invalid",
  "query_invalid",
  "precondition_unsupported",
  "idempotency_key_malformed",
  "unauthenticated",
  "forbidden_scope",
  "fencing_token_unissued",
  "not_found",
  "route_not_found",
  "method_not_allowed",
  "request_timeout",
  "sequence_out_of_order",
  "idempotency_in_flight",
  "contention",
  "fence_unchanged",
  "fencing_token_stale",
  "etag_mismatch",
  "body_too_large",
  "media_type_unsupported",
  "expectation_failed",
  "idempotency_key_reused",
  "fencing_token_required",
  "rate_limited",
  "headers_too_many",
  "internal",
  "unavailable",
  "verification_unavailable",
  "outcome_unknown",
] as const;

/**
 * `connection_failed`: no answer, or half of one. `timed_out`: none in time. `aborted`: the caller's signal. `lease_lost`: the lease's own signal, before anything was
 * sent. `answer_not_understood`: something between here and the gateway answered.
 */
export type LocalCode = "connection_failed" | "timed_out" | "aborted" | "lease_lost" | "answer_not_understood";

export type RefusalCode = (typeof problemCodes)[number] | LocalCode;
