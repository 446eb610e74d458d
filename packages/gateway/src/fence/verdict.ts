// What a caller may ask of the fenced store, and every answer to it. A verdict is a value: stale,
// mismatched, unavailable and unknown are ordinary answers, each says whether something was
// applied, and the store throws for none of them.
import { type Issued, MAX_TOKEN, type Token, type VerifyToken } from "@palisade/guard/gateway";

export type { Issued, Token, VerifyToken };
export { MAX_TOKEN };

export type WriteOperation = "put" | "patch" | "delete" | "seal";

/**
 * The state a conditional write requires. A number is `If-Match: "<rev>"`; "present" is `If-Match:
 * *` (a live document, any revision); "absent" is `If-None-Match: *` (never written, only sealed,
 * or deleted).
 */
export type Expected = number | "present" | "absent";

/**
 * The key names one intended write; the fingerprint tells a retry of it from another write under
 * the same key. The caller of the store scopes the key (per credential).
 */
export type Idempotency = { readonly key: string; readonly fingerprint: string };

export type WriteRequest = {
  readonly op: WriteOperation;
  readonly resource: string;
  readonly token: Token;
  /** Must rise within one token. Without it, equal tokens are accepted in order of arrival. */
  readonly seq?: number | undefined;
  /** Not for seal. */
  readonly expected?: Expected | undefined;
  /**
   * JSON text of the document (put) or of the merge patch (patch). Goes to Postgres as it is, so
   * that 12345678901234567890 keeps every digit.
   */
  readonly value?: string | undefined;
  /** For humans: which credential wrote. */
  readonly holder?: string | undefined;
  /** Not for seal, which may be repeated anyway. */
  readonly idempotency?: Idempotency | undefined;
};

export type Accepted = {
  readonly kind: "accepted";
  readonly resource: string;
  /**
   * The stored revision after the write; unchanged by a seal, and 0 for a resource that was sealed
   * and never written.
   */
  readonly rev: number;
  /** The stored fence after the write. */
  readonly token: Token;
  /**
   * The write made a document where there was none (first write, or first after a delete): 201
   * instead of 200.
   */
  readonly created: boolean;
  /** There is no document now: after a delete, or a seal of something absent. */
  readonly deleted: boolean;
  /**
   * JSON text as stored, for patch and seal (null when there is no document); undefined for put and
   * delete.
   */
  readonly value?: string | null | undefined;
  /**
   * True when the idempotency key was used before: nothing was written now, and this is the answer
   * of the first attempt.
   */
  readonly replayed: boolean;
};

/** currentToken is a hint, read after the refusal; it can only be too low. */
export type Stale = {
  readonly kind: "stale";
  readonly resource: string;
  readonly presentedToken: Token;
  readonly currentToken?: Token | undefined;
};
export type EtagMismatch = {
  readonly kind: "etag_mismatch";
  readonly resource: string;
  /** null: no document. */
  readonly currentRev: number | null;
};
export type SequenceOutOfOrder = {
  readonly kind: "sequence_out_of_order";
  readonly resource: string;
  readonly currentSeq?: number | undefined;
  /**
   * The revision that belongs to currentSeq: a holder that never received the answer to its first
   * try recognises its write by both.
   */
  readonly currentRev?: number | undefined;
};
/** patch or delete of something absent. */
export type NotFound = { readonly kind: "not_found"; readonly resource: string };
/**
 * Postgres cannot store this document (for instance \u0000, a number beyond numeric, nesting too
 * deep). The message is Postgres's own and safe to show.
 */
type ValueRejected = { readonly kind: "value_rejected"; readonly resource: string; readonly message: string };
/** Bytes of the document as it would have been stored: as sent (put) or as answered (patch). */
export type DocumentTooLarge = {
  readonly kind: "document_too_large";
  readonly resource: string;
  readonly bytes: number;
  readonly limitBytes: number;
};
/** The lock never issued this token: it is forged or corrupt. */
type TokenUnissued = { readonly kind: "token_unissued"; readonly resource: string; readonly presentedToken: Token };
/** The token would raise the fence, and the lock's nodes could not be asked. Not applied. */
type VerificationUnavailable = {
  readonly kind: "verification_unavailable";
  readonly resource: string;
  readonly presentedToken: Token;
};
/**
 * Lost a race too often (deadlock, serialization, a row locked for too long by another
 * transaction). Not applied; may be tried again.
 */
export type Contention = { readonly kind: "contention"; readonly resource: string; readonly code: string };
type IdempotencyInFlight = { readonly kind: "idempotency_in_flight" };
/** The same key came with another fingerprint. */
type IdempotencyKeyReused = { readonly kind: "idempotency_key_reused" };

/**
 * overloaded: the bounded queue is full. unreachable: no connection. refused: Postgres answered
 * that it cannot serve (53*, 57P03). not_recovered: it was restored, or nobody can tell that it was
 * not.
 */
export type UnavailableReason = "overloaded" | "closing" | "unreachable" | "read_only" | "refused" | "not_durable" | "not_recovered";
/** Certainly not applied. */
export type Unavailable = {
  readonly kind: "unavailable";
  readonly reason: UnavailableReason;
  readonly outcome: "not_applied";
  readonly cause?: Error | undefined;
  readonly retryAfterMs?: number | undefined;
};
/**
 * connection_lost: after sending. timed_out: the gateway's own timer. not_replicated: committed
 * here, perhaps not on the synchronous standby.
 */
export type UnknownReason = "connection_lost" | "timed_out" | "not_replicated";
/** Perhaps applied; retry with the same token and seq, or the same idempotency key. */
export type OutcomeUnknown = { readonly kind: "outcome_unknown"; readonly reason: UnknownReason; readonly cause?: Error | undefined };

export type Refused =
  | Stale
  | EtagMismatch
  | SequenceOutOfOrder
  | NotFound
  | ValueRejected
  | DocumentTooLarge
  | TokenUnissued
  | VerificationUnavailable
  | Contention;
export type Undecided = IdempotencyInFlight | IdempotencyKeyReused | Unavailable | OutcomeUnknown;
export type Verdict = Accepted | Refused | Undecided;

/** One operation of a transaction. A resource may appear once. */
export type TransactionOperation = Omit<WriteRequest, "idempotency">;
export type TransactionRequest = { readonly operations: readonly TransactionOperation[]; readonly idempotency?: Idempotency | undefined };

export type TransactionVerdict =
  /** In the order of the operations. */
  | { readonly kind: "committed"; readonly results: readonly Accepted[]; readonly replayed: boolean }
  /**
   * Nothing was applied. `refusals` are the operations that were refused, by their index; at least
   * one.
   */
  | { readonly kind: "refused"; readonly refusals: readonly { readonly index: number; readonly refusal: Refused }[] }
  | Undecided;

export type CallLease = Pick<WriteRequest, "resource" | "token" | "seq">;
/** A function of the user's database, called under the guards of these leases. */
export type CallRequest = {
  /** Its schema and name, as in the list of those allowed. */
  readonly function: string;
  /** A resource may appear once. */
  readonly leases: readonly CallLease[];
  /** JSON text of an object: the arguments by name. */
  readonly arguments: string;
  readonly holder?: string | undefined;
  /** A longer answer rolls the call back. */
  readonly maxAnswerBytes: number;
};

export type CallVerdict =
  /** JSON text of what the function returned. */
  | { readonly kind: "called"; readonly value: string }
  /** Nothing was applied. */
  | { readonly kind: "refused"; readonly refusal: Stale | SequenceOutOfOrder | TokenUnissued | VerificationUnavailable | Contention }
  /** The function is not in the list, or not in the database; or its arguments do not fit. */
  | { readonly kind: "function_unknown" | "arguments_invalid"; readonly message: string }
  /** The function failed, or answered too much. Nothing was applied. */
  | { readonly kind: "function_failed"; readonly sqlState: string | undefined; readonly message: string }
  | Unavailable
  | OutcomeUnknown;
