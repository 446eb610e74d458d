// The fenced store as the HTTP layer, the metrics and the tests see it: every question it answers.
import type {
  CallRequest,
  CallVerdict,
  TransactionRequest,
  TransactionVerdict,
  Unavailable,
  Verdict,
  WriteRequest,
} from "./fence/verdict.js";
import type { BatchEvent } from "./guard/group-commit.js";
import type { RaiseEvent } from "./guard/raise-check.js";
import type { ChangeFeed } from "./store/change-feed.js";
import type { FenceChange, FenceVerdict } from "./store/move-fence.js";
import type { HistoryPage, HistoryRequest, ListRequest, ListResult, ReadResult } from "./store/read.js";
import type { Readiness } from "./store/readiness.js";
import type { RefusedPage, RefusedRequest, RefusedWrite } from "./store/refusal-log.js";

export type { VerifyToken } from "./fence/verdict.js";
export type { FenceChange, FenceVerdict } from "./store/move-fence.js";
export type { HistoryEntry, HistoryRequest, ListItem, ListRequest, ListResult, ReadResult, ResourceState } from "./store/read.js";
export type { Readiness, ReadinessCheck } from "./store/readiness.js";
export type { RefusedEntry, RefusedRequest, RefusedWrite } from "./store/refusal-log.js";
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

/** Keeps refused writes; noting one costs its caller nothing. */
interface RefusedWrites {
  note(refused: RefusedWrite): void;
  read(request: RefusedRequest): Promise<RefusedPage | Unavailable>;
  /** At once, in place of within a second. */
  store(): Promise<void>;
}

export interface FencedStore {
  /** Absent where no history is kept. */
  readonly changes: ChangeFeed | undefined;
  /** Absent where refused writes are not kept. */
  readonly refusals: RefusedWrites | undefined;
  write(request: WriteRequest): Promise<Verdict>;
  transaction(request: TransactionRequest): Promise<TransactionVerdict>;
  /** Every function is unknown where none is allowed. */
  call(request: CallRequest): Promise<CallVerdict>;
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
