// What calls of the client take besides resource and document.
import type { Holder } from "./request-format.js";

/** Options of every call. */
export interface CallOptions {
  /** Ends the call with `aborted`. A write that was sent may still be applied. */
  readonly signal?: AbortSignal | undefined;
  /** For one try; the client's own when absent. */
  readonly timeoutMs?: number | undefined;
}

/**
 * Options of `put`, `patch` and `delete`: the holder, as `lease` or as `token`, and
 * conditions.
 */
export type WriteOptions = CallOptions &
  Holder & {
    /**
     * Position among the writes of this lease to this resource, from 1. Makes a retry after an unknown
     * outcome safe.
     */
    readonly seq?: number | undefined;
    /** Only if this is the stored revision; `*` for any. */
    readonly ifMatch?: number | "*" | undefined;
    /** Only if there is no document. */
    readonly ifNoneMatch?: "*" | undefined;
  };

/** Options of `seal`: the holder, as `lease` or as `token`. */
export type SealOptions = CallOptions & Holder;

/** Options of `get`. */
export interface GetOptions extends CallOptions {
  /** The revision the caller already has. */
  readonly ifNoneMatch?: number | undefined;
}

/** Options of `list`. */
export interface ListOptions extends CallOptions {
  /** Only names that begin with this. */
  readonly prefix?: string | undefined;
  /** Entries of a page at most. */
  readonly limit?: number | undefined;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
  /** What each entry has besides its name: fences (the default) or the document as well. */
  readonly include?: "fences" | "documents" | undefined;
  /** Also the resources without a document: deleted, or sealed and never written. */
  readonly tombstones?: "include" | undefined;
}

/** Options of `history`. */
export interface HistoryOptions extends CallOptions {
  /** Entries of a page at most. */
  readonly limit?: number | undefined;
  /** Only revisions below this one: `nextBefore` of the page before. */
  readonly before?: number | undefined;
}

/** Which refused writes to read. */
export interface RefusedOptions extends CallOptions {
  /** Only resources whose names begin with it. */
  readonly prefix?: string | undefined;
  /** Only those that were refused at this time or later. */
  readonly since?: Date | undefined;
  /** How many at most; 100 when absent. */
  readonly limit?: number | undefined;
  /** Only ids below this one: `nextBefore` of the page before. */
  readonly before?: number | undefined;
}

/** raise: exclude all holders below the token. lower: let the holder of the token write again. */
export interface FenceChange {
  /** Which way the fence moves. */
  readonly action: "raise" | "lower";
  /** Where the fence is to stand. */
  readonly token: number;
  /** Kept with the change, for people. */
  readonly reason: string;
}

interface OperationHead {
  readonly resource: string;
  /** In place of the token for all. */
  readonly token?: number | undefined;
  readonly seq?: number | undefined;
}
interface Conditions {
  readonly ifMatch?: number | "*" | undefined;
  readonly ifNoneMatch?: "*" | undefined;
}
/** One operation of a transaction. */
export type Operation =
  | (OperationHead & Conditions & { readonly op: "put" | "patch"; readonly value: unknown })
  | (OperationHead & Conditions & { readonly op: "delete" })
  | (OperationHead & { readonly op: "seal" });

/**
 * Options of `transaction`: a holder, and a number, for all operations that name no token of their
 * own. A transaction in which any write has a number is safe to retry: it is all or nothing.
 */
export type TransactionOptions = CallOptions & Partial<Holder> & { readonly seq?: number | undefined };
