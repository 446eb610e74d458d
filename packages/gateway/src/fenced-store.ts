// The fenced store as the HTTP layer, the metrics and the tests see it: every question it answers.
import type { TransactionRequest, TransactionVerdict, Unavailable, Verdict, WriteRequest } from "./fence/verdict.js";
import type { FenceChange, FenceVerdict } from "./store/move-fence.js";
import type { Readiness } from "./store/readiness.js";
import type { HistoryPage, HistoryRequest, ListRequest, ListResult, ReadResult } from "./store/reads.js";
import type { BatchEvent } from "./write/group-commit.js";
import type { RaiseEvent } from "./write/raise-check.js";

export type { VerifyToken } from "./fence/verdict.js";
export type { FenceChange, FenceVerdict } from "./store/move-fence.js";
export type { Readiness, ReadinessCheck } from "./store/readiness.js";
export type { HistoryEntry, HistoryRequest, ListItem, ListRequest, ListResult, ReadResult, ResourceState } from "./store/reads.js";
export type { Durability } from "./store/session.js";

export type StoreEvent =
  | BatchEvent
  | RaiseEvent
  | { readonly kind: "connection_error"; readonly error: Error }
  /** A write was unavailable because of this error; once for all writes of a statement. */
  | { readonly kind: "refused_by_database"; readonly error: Error };

export type HistoryResult = HistoryPage | { readonly kind: "off" } | Unavailable;

export type StoreStats = {
  readonly queuedWrites: number;
  readonly queuedBytes: number;
  readonly statementsInFlight: number;
  readonly connections: { readonly total: number; readonly idle: number; readonly waiting: number };
};

export interface FencedStore {
  write(request: WriteRequest): Promise<Verdict>;
  transaction(request: TransactionRequest): Promise<TransactionVerdict>;
  read(resource: string): Promise<ReadResult>;
  list(request: ListRequest): Promise<ListResult>;
  history(request: HistoryRequest): Promise<HistoryResult>;
  raiseFence(change: FenceChange): Promise<FenceVerdict>;
  lowerFence(change: FenceChange): Promise<FenceVerdict>;
  ready(): Promise<Readiness>;
  stats(): StoreStats;
  /**
   * Refuses new work at once (unavailable/closing), finishes accepted work within `drainMs`, then
   * ends every connection.
   */
  close(options?: { readonly drainMs?: number | undefined }): Promise<void>;
}
