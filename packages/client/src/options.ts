// What calls of the client take besides resource and document.
import type { Holder } from "./request-format.js";

export interface CallOptions {
  /** Ends the call with `aborted`. A write that was sent may still be applied. */
  readonly signal?: AbortSignal | undefined;
  /** For one try; the client's own when absent. */
  readonly timeoutMs?: number | undefined;
}

export type WriteOptions = CallOptions &
  Holder & {
    /** Position among the writes of this lease. Makes a retry after an unknown outcome safe. */
    readonly seq?: number | undefined;
    /** Only if this is the stored revision; `*` for any. */
    readonly ifMatch?: number | "*" | undefined;
    /** Only if there is no document. */
    readonly ifNoneMatch?: "*" | undefined;
    /** Names this write. Makes a retry after an unknown outcome safe. */
    readonly idempotencyKey?: string | undefined;
  };

export type SealOptions = CallOptions & Holder;

export interface GetOptions extends CallOptions {
  /** The revision the caller already has. */
  readonly ifNoneMatch?: number | undefined;
}

export interface ListOptions extends CallOptions {
  readonly prefix?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
  readonly include?: "fences" | "documents" | undefined;
  /** Also the resources without a document: deleted, or sealed and never written. */
  readonly tombstones?: "include" | undefined;
}

export interface HistoryOptions extends CallOptions {
  readonly limit?: number | undefined;
  /** Only revisions below this one: `nextBefore` of the page before. */
  readonly before?: number | undefined;
}

/** raise: exclude all holders below the token. lower: let the holder of the token write again. */
export interface FenceChange {
  readonly action: "raise" | "lower";
  readonly token: number;
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
export type Operation =
  | (OperationHead & Conditions & { readonly op: "put" | "patch"; readonly value: unknown })
  | (OperationHead & Conditions & { readonly op: "delete" })
  | (OperationHead & { readonly op: "seal" });

export type TransactionOptions = CallOptions & Partial<Holder> & { readonly idempotencyKey?: string | undefined };

/** One lease of a call: of @palisade/lock, or its resource and token. */
export interface GuardingLease {
  readonly resource: string;
  /** All resources of the lease, if it has more than one. */
  readonly resources?: readonly string[] | undefined;
  readonly token: number;
  readonly signal?: AbortSignal | undefined;
  /** Position among the writes of this lease. Makes a retry after an unknown outcome safe. */
  readonly seq?: number | undefined;
}

export type FunctionOptions = CallOptions & {
  /** What the call is guarded by, all of it in its one transaction. */
  readonly leases: readonly GuardingLease[];
};
