// What each call of the client answers: a union of success and refusal. A call throws only for
// misuse.

/** From the gateway; a unit test holds this list against the server's. */
export const problemCodes = [
  "request_malformed",
  "fencing_token_malformed",
  "resource_name_invalid",
  "json_invalid",
  "query_invalid",
  "precondition_unsupported",
  "unauthenticated",
  "forbidden_scope",
  "fencing_token_unissued",
  "not_found",
  "route_not_found",
  "method_not_allowed",
  "request_timeout",
  "sequence_out_of_order",
  "contention",
  "fence_unchanged",
  "fencing_token_stale",
  "etag_mismatch",
  "body_too_large",
  "document_too_large",
  "answer_too_large",
  "media_type_unsupported",
  "expectation_failed",
  "fencing_token_required",
  "rate_limited",
  "headers_too_many",
  "internal",
  "unavailable",
  "verification_unavailable",
  "outcome_unknown",
] as const;

/**
 * `connection_failed`: no answer, or half of one. `timed_out`: none in time. `aborted`: the
 * caller's signal. `lease_lost`: the lease's own signal, before anything was sent.
 * `answer_not_understood`: an answer, also a success, that is not the gateway's to this call.
 */
export type LocalCode = "connection_failed" | "timed_out" | "aborted" | "lease_lost" | "answer_not_understood";

/** All codes of refusals: of the gateway, and of the client itself. */
export type RefusalCode = (typeof problemCodes)[number] | LocalCode;

/** Why a call did not succeed, and whether it may have changed something. */
export interface Refusal {
  /** Tells it from a success. */
  readonly ok: false;
  /** What to act on. */
  readonly code: RefusalCode;
  /** One or two sentences for a log. */
  readonly detail: string;
  /** `unknown`: the request may or may not have changed something. */
  readonly outcome: "not_applied" | "unknown";
  /** Undefined when no answer came. */
  readonly status?: number | undefined;
  /** The resource that was refused. */
  readonly resource?: string | undefined;
  /** The token of the call. */
  readonly presentedToken?: number | undefined;
  /** The fence that it met. */
  readonly currentToken?: number | undefined;
  /** The sequence number of the last write under that fence. */
  readonly currentSeq?: number | undefined;
  /** The revision that is stored, in quotes as HTTP has it. */
  readonly currentETag?: string | undefined;
  /** Of a transaction whose number is stored: the stored revision of each operation's resource. */
  readonly currentRevs?: readonly number[] | undefined;
  /** Which operation of a transaction, counted from 0. */
  readonly operation?: number | undefined;
  /** The id of this request in the gateway's log. */
  readonly requestId?: string | undefined;
  /** How long the gateway asks to wait before another try. */
  readonly retryAfterMs?: number | undefined;
  /** How often the request was sent. */
  readonly attempts: number;
}

interface Stored {
  readonly ok: true;
  readonly resource: string;
  /** The stored fence. */
  readonly token: number;
  /** The stored revision; `ifMatch` of a later write. */
  readonly rev: number;
  /** The write was recognised by its sequence number as one of an earlier try: it was stored once. */
  readonly replayed: boolean;
}

/** The answer of `put`; `created` where there was no document before. */
export type PutResult = (Stored & { readonly created: boolean }) | Refusal;
/** The answer of `delete`. */
export type DeleteResult = Stored | Refusal;
/** `value` and `text` are present for callers with a read scope. */
export type PatchResult<T = unknown> = (Stored & { readonly value?: T; readonly text?: string }) | Refusal;
/** `value` is null where there is no document; `text` is the same with every digit. */
export type SealResult<T = unknown> =
  | {
      readonly ok: true;
      readonly resource: string;
      readonly token: number;
      readonly rev: number;
      readonly value: T | null;
      readonly text: string;
    }
  | Refusal;
/** The answer of `get`. */
export type GetResult<T = unknown> =
  | { readonly ok: true; readonly modified: true; readonly token: number; readonly rev: number; readonly value: T; readonly text: string }
  | Refusal;
/** The answer of `get` with `ifNoneMatch`: the stored revision may still be that one. */
export type ConditionalGetResult<T = unknown> =
  | GetResult<T>
  | { readonly ok: true; readonly modified: false; readonly token: number; readonly rev: number };
/** The answer of `transaction`: what is stored for each operation, in their order. */
export type TransactionResult =
  | {
      readonly ok: true;
      readonly results: readonly { readonly resource: string; readonly token: number; readonly rev: number; readonly value?: unknown }[];
      readonly replayed: boolean;
    }
  | Refusal;

/** One resource of a list. */
export interface ListedResource {
  /** Its name. */
  readonly resource: string;
  /** Its fence. */
  readonly token: number;
  /** Its revision; 0 when nothing was ever written. */
  readonly rev: number;
  /** The sequence number of the last write under this token. */
  readonly seq: number;
  /** The id of the credential that wrote or sealed last; null where there was none. */
  readonly holder: string | null;
  /** When that was, as ISO 8601. */
  readonly updatedAt: string;
  /** The document, where it was asked for. */
  readonly value?: unknown;
}
/** The answer of `list`. */
export type ListResult =
  | {
      readonly ok: true;
      readonly items: readonly ListedResource[];
      readonly nextCursor: string | null;
      /** From distributed tables: may show one write of a transaction and lack another. */
      readonly snapshot?: false | undefined;
    }
  | Refusal;

/** One accepted write. */
export interface HistoryEntry {
  /** The revision that it made. */
  readonly rev: number;
  /** What it was. */
  readonly op: "put" | "patch" | "delete";
  /** The token of its writer. */
  readonly token: number;
  /** Its sequence number within that token; 0 without one. */
  readonly seq: number;
  /** The id of the credential that wrote it; null where there was none. */
  readonly holder: string | null;
  /** When, as ISO 8601. */
  readonly at: string;
}
/** The answer of `history`. */
export type HistoryResult =
  | {
      readonly ok: true;
      readonly resource: string;
      readonly entries: readonly HistoryEntry[];
      /** `before` of the next page; null on the last one. */
      readonly nextBefore: number | null;
    }
  | Refusal;
/** One refused write. */
export interface RefusedEntry {
  /** Rises with each refusal of the gateway; the place of a page. */
  readonly id: number;
  /** When the last of those that were equal was refused, as ISO 8601. */
  readonly at: string;
  /** When the first of them was, as ISO 8601. */
  readonly firstAt: string;
  /** How many there were. */
  readonly times: number;
  /** What was to be written. */
  readonly resource: string;
  /** What was answered. */
  readonly code: RefusalCode;
  /** The token that was presented. */
  readonly presentedToken: number | null;
  /** The fence that refused it, where that was the reason. */
  readonly currentToken: number | null;
  /** The id of the credential. */
  readonly caller: string;
}
/** The answer of `refused`. */
export type RefusedResult =
  | {
      readonly ok: true;
      /** As ISO 8601: from then on the gateway that answered has all that it refused. */
      readonly since: string;
      readonly entries: readonly RefusedEntry[];
      /** `before` of the next page; null on the last one. */
      readonly nextBefore: number | null;
    }
  | Refusal;
/** The answer of `fence`. */
export type FenceResult = ({ readonly ok: true; readonly moved: FenceMove | null } & Omit<ListedResource, "value">) | Refusal;
/** The last time that an operator moved a fence, also to take the lock away from its holder. */
export interface FenceMove {
  /** When, as ISO 8601. */
  readonly at: string;
  /** The id of the credential. */
  readonly by: string;
  /** Why, in the operator's words. */
  readonly reason: string;
  /** Where it stood; null where there was none. */
  readonly previousToken: number | null;
  /** Where it was moved to. */
  readonly token: number;
}
/** The answer of `changeFence`: where the fence stood and where it stands. */
export type FenceChangeResult =
  | { readonly ok: true; readonly resource: string; readonly previousToken: number | null; readonly token: number }
  | Refusal;
