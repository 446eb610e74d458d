// What a caller may ask of the fenced store, and every answer to it. A verdict is a value: stale,
// mismatched, unavailable and unknown are ordinary answers, each says whether something was
// applied, and the store throws for none of them.
import {
  checkName,
  checkText,
  checkToken,
  type Issued,
  isCount,
  isName,
  MAX_NAME_BYTES,
  MAX_TOKEN,
  type Token,
  type VerifyToken,
} from "@palisade/guard/gateway";

export type { Issued, Token, VerifyToken };
export { MAX_TOKEN };

export type WriteOperation = "put" | "patch" | "delete" | "seal";

/**
 * The state a conditional write requires. A number is `If-Match: "<rev>"`; "present" is `If-Match:
 * *` (a live document, any revision); "absent" is `If-None-Match: *` (never written, only sealed,
 * or deleted).
 */
export type Expected = number | "present" | "absent";

export type WriteRequest = {
  readonly op: WriteOperation;
  readonly resource: string;
  readonly token: Token;
  /**
   * Must rise within one token, so that a write is not applied again when it is repeated. Without
   * it, equal tokens are accepted in order of arrival.
   */
  readonly seq?: number | undefined;
  /** Not for seal. */
  readonly expected?: Expected | undefined;
  /**
   * JSON text of the document (put) or of the merge patch (patch). Never parsed into numbers, so
   * that 12345678901234567890 keeps every digit.
   */
  readonly value?: string | undefined;
  /** For humans: which credential wrote. */
  readonly holder?: string | undefined;
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
   * JSON text of the document, for patch and seal (null when there is none); undefined for put and
   * delete, and where what was sealed is larger than a statement for several writes may answer.
   */
  readonly value?: string | null | undefined;
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
/** What a transaction would show of the resources that it seals. */
export type AnswerTooLarge = { readonly kind: "answer_too_large"; readonly resource: string };
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
export const unavailable = (reason: UnavailableReason, cause?: Error): Unavailable => ({
  kind: "unavailable",
  reason,
  outcome: "not_applied",
  cause,
});

/**
 * connection_lost: after sending. timed_out: the gateway's own timer. not_replicated: committed
 * here, perhaps not on the synchronous standby.
 */
export type UnknownReason = "connection_lost" | "timed_out" | "not_replicated";
/** Perhaps applied; with the same token and seq it can be sent again. */
export type OutcomeUnknown = { readonly kind: "outcome_unknown"; readonly reason: UnknownReason; readonly cause?: Error | undefined };

export type Refused =
  | Stale
  | EtagMismatch
  | SequenceOutOfOrder
  | NotFound
  | ValueRejected
  | DocumentTooLarge
  | AnswerTooLarge
  | TokenUnissued
  | VerificationUnavailable
  | Contention;
export type Undecided = Unavailable | OutcomeUnknown;
export type Verdict = Accepted | Refused | Undecided;

/** A resource may appear once. */
export type TransactionRequest = { readonly operations: readonly WriteRequest[] };

export type TransactionVerdict =
  /** In the order of the operations. */
  | { readonly kind: "committed"; readonly results: readonly Accepted[] }
  /**
   * Nothing was applied. `refusals` are the operations that were refused, by their index; at least
   * one.
   */
  | {
      readonly kind: "refused";
      readonly refusals: readonly { readonly index: number; readonly refusal: Refused }[];
      /**
       * Of the resource of each operation, as read after the refusal, where one of them found its own
       * number: the transaction was applied before.
       */
      readonly currentRevs?: readonly number[] | undefined;
    }
  | Undecided;

/** What a patch is refused with while it is merged; what is put is measured before any I/O. */
export class TooLarge extends Error {
  constructor(readonly refusal: DocumentTooLarge) {
    super(`the document of ${refusal.resource} would have ${refusal.bytes} bytes and may have ${refusal.limitBytes}`);
  }
}

// Whether a request may be sent to the store at all. Misuse is a RangeError or TypeError before any
// I/O. The HTTP layer has its own checks with better messages; whatever passes here reaches
// Postgres.

export { checkName, checkText, checkToken, isName, MAX_NAME_BYTES };

const operations: ReadonlySet<string> = new Set(["put", "patch", "delete", "seal"]);
export const MAX_OPERATIONS = 1_000;

export function checkTransaction({ operations: list }: TransactionRequest): void {
  if (list.length === 0 || list.length > MAX_OPERATIONS)
    throw new RangeError(`a transaction has 1 to ${MAX_OPERATIONS} operations, not ${list.length}`);
  for (const operation of list) checkWrite(operation);
  if (new Set(list.map((operation) => operation.resource)).size < list.length)
    throw new TypeError("a resource may appear once in a transaction");
}

/** Documents that are too large to be put, as they were sent, with their places in the list. */
export function tooLargeToPut(
  operations: readonly WriteRequest[],
  limitBytes: number,
): { readonly index: number; readonly refusal: DocumentTooLarge }[] {
  return operations.flatMap(({ op, resource, value = "" }, index) => {
    // A character has at most three bytes in UTF-8 for each unit of length.
    if (op !== "put" || value.length * 3 <= limitBytes) return [];
    const bytes = Buffer.byteLength(value);
    return bytes > limitBytes ? [{ index, refusal: { kind: "document_too_large", resource, bytes, limitBytes } }] : [];
  });
}

export function checkWrite({ op, resource, token, seq, expected, value, holder }: WriteRequest): void {
  if (!operations.has(op)) throw new TypeError(`there is no operation ${String(op)}`);
  checkName(resource);
  checkToken(token);
  if (seq !== undefined && !isCount(seq))
    throw new RangeError(`a sequence number is an integer from 1 to ${MAX_TOKEN}, not ${String(seq)}`);
  if (typeof expected === "number" && !isCount(expected))
    throw new RangeError(`a revision is an integer from 1 to ${MAX_TOKEN}, not ${expected}`);
  if (expected !== undefined && op === "seal") throw new TypeError("a seal is never conditional");
  const carriesDocument = op === "put" || op === "patch";
  if (carriesDocument !== (typeof value === "string")) throw new TypeError(`${op} ${carriesDocument ? "needs" : "takes no"} document`);
  if (op === "patch" && !isJson(value)) throw new TypeError("a merge patch is JSON");
  if (holder !== undefined) checkText({ text: holder, what: "a holder", maxBytes: MAX_NAME_BYTES });
}

/** A document is judged by Postgres; a patch is taken apart before that. */
function isJson(text = ""): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
